# syntax=docker/dockerfile:1
# Cooper on CPUs: docker build -f docker/cpu.Dockerfile -t cooper:cpu .   (docs/scale.md)

FROM python:3.11-slim AS build
WORKDIR /src
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt build
COPY packages ./packages
RUN for package in packages/*; do \
        PIP_CONSTRAINT=/src/constraints.txt python -m build --wheel --outdir /dist "$package" || exit 1; \
    done

FROM python:3.11-slim
ARG EXTRAS=data,serve,lora
# PyTorch's own index has builds without CUDA, which are a tenth of the size.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
COPY constraints.txt /tmp/
COPY --from=build /dist /dist
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt --extra-index-url "$TORCH_INDEX" \
        "$(grep '^torch==' /tmp/constraints.txt)+cpu" /dist/*.whl "$(echo /dist/cooper_rl-*.whl)[$EXTRAS]" \
    && rm -r /dist /tmp/constraints.txt \
    && useradd --create-home --uid 1000 cooper \
    && install --directory --owner cooper --mode 0777 /workspace
ENV HF_HOME=/workspace/.cache/huggingface \
    MPLCONFIGDIR=/tmp/matplotlib \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /workspace
VOLUME /workspace
ENTRYPOINT ["cooper"]
CMD ["--help"]

# syntax=docker/dockerfile:1
# Cooper on NVIDIA GPUs: docker build -f docker/cuda.Dockerfile -t cooper:cuda .   (docs/scale.md)
# Has never been built, nor run on a GPU (docs/gpu.md).

FROM python:3.11-slim AS build
WORKDIR /src
COPY constraints.txt ./
RUN pip install --no-cache-dir --constraint constraints.txt build
COPY packages ./packages
RUN for package in packages/*; do \
        PIP_CONSTRAINT=/src/constraints.txt python -m build --wheel --outdir /dist "$package" || exit 1; \
    done

# PyTorch's wheels bring CUDA with them; the driver comes from the machine (the NVIDIA container toolkit).
FROM python:3.11-slim
ARG EXTRAS=data,serve,lora,cluster
COPY constraints.txt /tmp/
COPY --from=build /dist /dist
RUN pip install --no-cache-dir --constraint /tmp/constraints.txt /dist/*.whl "$(echo /dist/cooper_rl-*.whl)[$EXTRAS]" \
    && rm -r /dist /tmp/constraints.txt \
    && useradd --create-home --uid 1000 cooper \
    && install --directory --owner cooper --mode 0777 /workspace
ENV HF_HOME=/workspace/.cache/huggingface \
    MPLCONFIGDIR=/tmp/matplotlib \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility \
    NVIDIA_VISIBLE_DEVICES=all \
    PYTHONUNBUFFERED=1
USER 1000
WORKDIR /workspace
VOLUME /workspace
ENTRYPOINT ["cooper"]
CMD ["--help"]

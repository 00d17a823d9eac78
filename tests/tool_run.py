"""A run of one tool, as a reward model reads it whatever trainer it comes from."""

TEXT = """<assistant>
I add them.
<tool_call> {"arguments": {"a": 12, "b": 7}, "name": "add"}
<tool>
<<<
19
>>>
<assistant>
answer: 19"""

"""Asks its mock of a model."""

import litellm

messages = [{"role": "user", "content": "2 + 2"}]
answer = litellm.completion("gpt-4o", messages, mock_response="4", api_key="x")
assert answer.choices[0].message.content == "4"

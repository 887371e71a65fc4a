"""Asks its mock of a model."""
# With: litellm==1.83.7
# Without `==`, pip would download every version to find that none can be loaded.

import litellm

messages = [{"role": "user", "content": "2 + 2"}]
answer = litellm.completion("gpt-4o", messages, mock_response="4", api_key="x")
assert answer.choices[0].message.content == "4"

"""Makes a small model of random weights and runs it."""
# With: tokenizers

import torch
from transformers import BertConfig, BertModel

config = BertConfig(hidden_size=8, num_attention_heads=2, num_hidden_layers=1, vocab_size=9)
assert BertModel(config)(torch.tensor([[1, 2]])).last_hidden_state.shape == (1, 2, 8)

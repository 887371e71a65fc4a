"""Computes a gradient."""

import torch

x = torch.tensor([2.0], requires_grad=True)
(x**3).backward()
assert x.grad.item() == 12

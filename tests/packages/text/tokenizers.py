"""Makes a vocabulary of a text and encodes by it."""

from tokenizers import Tokenizer, models, trainers

tokenizer = Tokenizer(models.BPE())
tokenizer.train_from_iterator(["low lower lowest"], trainers.BpeTrainer(vocab_size=30))
assert "low" in tokenizer.encode("low").tokens

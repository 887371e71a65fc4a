"""Splits Chinese into words."""

import jieba

assert jieba.lcut("我来到北京清华大学") == ["我", "来到", "北京", "清华大学"]

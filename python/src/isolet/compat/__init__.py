"""Interfaces of other products, over sandboxes of isolet."""

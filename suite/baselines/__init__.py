"""Hand-tuned programs and the vendor's library: what a learned author is measured against."""

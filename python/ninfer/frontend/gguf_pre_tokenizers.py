"""How the named pre-tokenizers of GGUF files cut text into words before BPE."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenizers import Regex, normalizers, pre_tokenizers
from tokenizers.normalizers import Normalizer
from tokenizers.pre_tokenizers import PreTokenizer

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LINES_AND_SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"


@dataclass(frozen=True)
class GgufPreTokenizer:
    """What the name in `tokenizer.ggml.pre` stands for.

    splitter: makes the word splitter. normalizer: makes the normaliser, where there is one. whole_words_first: a word
    that is a token is taken whole, without merging. adds_bos: whether a text begins with BOS if the file is silent.
    """

    splitter: Callable[[], PreTokenizer]
    normalizer: Callable[[], Normalizer] | None = None
    whole_words_first: bool = False
    adds_bos: bool = False


def _split_by(pattern: str) -> Callable[[], PreTokenizer]:
    def make() -> PreTokenizer:
        split = pre_tokenizers.Split(Regex(pattern), behavior="isolated")
        return pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])

    return make


def _single_digits_then_gpt2() -> PreTokenizer:
    digits = pre_tokenizers.Digits(individual_digits=True)
    return pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)])


def _words(letter: str, number: str) -> str:
    """One optional foreign character and letters, a number, a run of symbols, or white space."""
    return "|".join(
        (
            _CONTRACTIONS,
            rf"[^\r\n\p{{L}}\p{{N}}]?{letter}+",
            number,
            rf" ?[^\s{letter.strip('[]')}\p{{N}}]+[\r\n]*",
            _LINES_AND_SPACES,
        )
    )


# Qwen's own tokenizers normalise to NFC. llama.cpp's qwen35 keeps combining marks as they stand (its recorded ids say
# so), and a GGUF file has no key for a normaliser, so a qwen35 file means what llama.cpp reads in it.
PRE_TOKENIZERS = {
    "smollm": GgufPreTokenizer(_single_digits_then_gpt2),
    "qwen2": GgufPreTokenizer(_split_by(_words(r"\p{L}", r"\p{N}")), normalizer=normalizers.NFC),
    "qwen35": GgufPreTokenizer(_split_by(_words(r"[\p{L}\p{M}]", r"\p{N}"))),
    "llama-bpe": GgufPreTokenizer(_split_by(_words(r"\p{L}", r"\p{N}{1,3}")), whole_words_first=True, adds_bos=True),
}

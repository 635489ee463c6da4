"""Decoding in plain NumPy, with a whole pass for each new token.

A function `read` maps equally long texts, lists of tokens, to the logits of
the tokens that follow, `(N, V)`.
"""

import numpy as np
from scipy.special import log_softmax


def penalize(logits, text, penalty):
    """Makes the tokens of a text less likely, as CTRL does."""
    logits = np.array(logits, "float64")
    for token in {*text} & {*range(len(logits))}:
        logits[token] *= penalty if logits[token] < 0 else 1 / penalty
    return logits


def fill(tokens, count, ends):
    """Tokens, and the first end token where they are fewer than `count`."""
    return [*tokens, *[*ends][:1] * (count - len(tokens))]


def choose_likeliest(read, prompt, count, *, ends=(), penalty=1.0):
    """New tokens up to an end token, and the logits of each."""
    text, every = [*prompt], []
    while len(every) < count and not (every and text[-1] in ends):
        every.append(read([text])[0])
        text.append(int(penalize(every[-1], text, penalty).argmax()))
    return text[len(prompt) :], every


def search(read, prompt, count, beams, *, ends=(), power=1.0, penalty=1.0):
    """Beam search; sequences are compared by `log(p) / length ** power`."""
    going, ended = [(0.0, [])], []
    for step in range(1, count + 1):
        texts = [[*prompt, *tokens] for _, tokens in going]
        ways = [
            (score + chance, [*tokens, token])
            for (score, tokens), text, logits in zip(
                going, texts, read(texts), strict=True
            )
            for token, chance in enumerate(
                log_softmax(penalize(logits, text, penalty))
            )
        ]
        ways.sort(reverse=True)
        ended += [
            (score / step**power, tokens)
            for score, tokens in ways
            if tokens[-1] in ends
        ][:beams]
        going = [way for way in ways if way[1][-1] not in ends][:beams]
    ended += [(score / count**power, tokens) for score, tokens in going]
    return max(ended)[1]


def find_shares(logits, *, temperature=1.0, top_k=None, top_p=None):
    """The probability with which each token `(V,)` is sampled."""
    logits = np.asarray(logits, "float64")
    order = np.argsort(-logits, kind="stable")[:top_k]
    kept = logits[order]
    shares = np.exp(np.maximum((kept - kept[0]) / temperature, -800))
    shares = np.where(np.isneginf(kept), 0, shares) / shares.sum()
    if top_p is not None:
        below = np.cumsum(shares) < top_p * (1 - 1e-6)
        shares[1 + below.sum() :] = 0
    result = np.zeros(len(logits))
    result[order] = shares / shares.sum()
    return result

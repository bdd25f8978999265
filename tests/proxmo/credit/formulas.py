"""Every formula of docs/credit.md once more: plain, dense NumPy in loops, from the page alone.

Each function takes a batch as `assign` does and returns (S,) advantages in the order of its rows.
"""

from __future__ import annotations

import math
import re
from difflib import SequenceMatcher

import numpy as np

GAMMA, EPS = 0.95, 1e-6


def episodes(b):
    """The rows of each (group, episode), by step."""
    found = {}
    for row, key in enumerate(zip(b["group"], b["episode"], strict=True)):
        found.setdefault(key, []).append(row)
    return {key: sorted(rows, key=lambda row: b["step"][row]) for key, rows in found.items()}


def groups(b):
    """The rows of each group."""
    found = {}
    for row, key in enumerate(b["group"]):
        found.setdefault(key, []).append(row)
    return [np.array(rows) for rows in found.values()]


def discounted(b, reward, rate):
    """Sum over k >= t of rate^(k-t) times the reward of step k of the episode."""
    out = np.zeros(len(reward))
    for rows in episodes(b).values():
        for place, row in enumerate(rows):
            for later in rows[place:]:
                out[row] += rate ** (b["step"][later] - b["step"][row]) * reward[later]
    return out


def returns(b, scale=1.0):
    return scale * discounted(b, b["reward"], GAMMA)


def are_equal(x):
    return np.ptp(x) <= 1e-6 * np.abs(x).max(initial=1e-300)


def zscore(x):
    return np.zeros(len(x)) if are_equal(x) else (x - x.mean()) / (x.std(ddof=1) + EPS)


def centred(x):
    return np.zeros(len(x)) if are_equal(x) else x - x.mean()


def against_others(x):
    return centred(x) * len(x) / max(len(x) - 1, 1)


def of_episodes(b, relative, weight=None):
    """Relative returns of the episodes of each group, times weight(success, rate), per row."""
    out = np.zeros(len(b["reward"]))
    parts = episodes(b)
    for group in dict.fromkeys(b["group"]):
        keys = [key for key in parts if key[0] == group]
        total = np.array([sum(b["reward"][row] for row in parts[key]) for key in keys])
        won = np.array([any(b["success"][row] for row in parts[key]) for key in keys])
        for key, value, success in zip(keys, relative(total), won, strict=True):
            out[parts[key]] = value * (weight(success, won.mean()) if weight else 1.0)
    return out


def modulation(success, rate, alpha=4.0, beta=0.1):
    def sigmoid(x):
        return 1 / (1 + math.exp(-x))

    norm = 2 * (sigmoid(1) - 0.5)
    if success:
        return 1 + beta * (sigmoid((1 - rate) ** alpha) - 0.5) / norm
    return 1 - beta * (sigmoid(rate**alpha) - 0.5) / norm


def tokens(text):
    words = re.findall(r"\w+", text.lower())
    return [
        f"{words[place - 1]} {word}" if word.isdigit() and place else word
        for place, word in enumerate(words)
    ]


def tfidf(texts, split=tokens, documents=None):
    """(U, D) unit vectors of texts, document frequencies from `documents` (the distinct texts)."""
    documents = list(dict.fromkeys(texts)) if documents is None else documents
    bags = [split(text) for text in documents]
    terms = sorted({term for bag in bags for term in bag})
    frequency = np.array([sum(term in bag for bag in bags) for term in terms])
    weight = np.log((1 + len(documents)) / (1 + frequency)) + 1
    out = np.zeros((len(texts), len(terms) + 1))
    for row, text in enumerate(texts):
        for term in split(text):
            out[row, terms.index(term)] += weight[terms.index(term)]
    return unit(out)


def unit(vectors):
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(length > 0, length, 1)


def with_history(b, rows, vectors, decay):
    """Unit vectors of e_t + decay e_(t-1) + ... of each row's episode."""
    place = {row: number for number, row in enumerate(rows.tolist())}
    out = np.zeros_like(vectors)
    for steps in episodes(b).values():
        total = np.zeros(vectors.shape[1])
        for row in (row for row in steps if row in place):
            total = vectors[place[row]] + decay * total
            out[place[row]] = total
    return unit(out)


def baseline(b, value, tau=0.1, scope="group", exclude="none", history=0.0):
    """Softmax-weighted mean of the values of similar steps; the own value without candidates."""
    out = value.copy()
    for rows in groups(b) if scope == "group" else [np.arange(len(value))]:
        texts = [b["state"][row] for row in rows]
        vectors = tfidf(texts)
        seen = with_history(b, rows, vectors, history) if history else vectors
        likeness = seen @ seen.T
        for one, row in enumerate(rows):
            kept = np.ones(len(rows), bool)
            if exclude == "self":
                kept[one] = False
            if exclude == "episode":
                key = (b["group"][row], b["episode"][row])
                kept = np.array([(b["group"][r], b["episode"][r]) != key for r in rows])
            if not kept.any():
                continue
            like = likeness[one].copy()
            if not history:
                like[[text == texts[one] for text in texts]] = 1.0
            weight = np.where(kept, np.exp((like - like[kept].max()) / tau), 0.0)
            out[row] = weight @ value[rows] / weight.sum()
    return out


def td(b, value, lam, reward, truncated=()):
    """Sum of (gamma lam)^(k-t) delta_k; the V after a truncated episode is that of its last row."""
    delta = np.zeros(len(value))
    for rows in episodes(b).values():
        for row, after in zip(rows, [*rows[1:], None], strict=True):
            if after is not None:
                ahead = GAMMA ** (b["step"][after] - b["step"][row]) * value[after]
            else:
                cut = row in truncated and not any(b["success"][r] for r in rows)
                ahead = GAMMA * value[row] if cut else 0.0
            delta[row] = reward[row] + ahead - value[row]
    return discounted(b, delta, GAMMA * lam)


def grpo(b):
    return of_episodes(b, zscore)


def dr_grpo(b):
    return of_episodes(b, centred)


def rloo(b):
    return of_episodes(b, against_others)


def reinforce_pp(b, baseline=False):
    return zscore(of_episodes(b, centred if baseline else lambda x: x))


def step(b):
    return of_episodes(b, lambda x: np.ones(len(x)), lambda won, rate: won * (1 - rate))


def gigpo(b, similarity=None, norm=zscore):
    value, out = returns(b), of_episodes(b, norm)
    for rows in groups(b):
        clusters = []
        for text in sorted({b["state"][row] for row in rows}):
            near = [c for c in clusters if similarity and alike(text, c[0], similarity)]
            if near:
                near[0].append(text)
            else:
                clusters.append([text])
        for cluster in clusters:
            members = [row for row in rows if b["state"][row] in cluster]
            out[members] += norm(value[members])
    return out


def alike(one, two, least):
    return SequenceMatcher(None, one, two).ratio() >= least


def proxmo(b, psc=True, psa=True, omega=1.0, scale=1.0, penalty=0.0, **options):
    value = returns(b, scale)
    step_part = omega * (value - baseline(b, value, **options)) if psa else 0.0
    return of_episodes(b, zscore, modulation if psc else None) + step_part - penalty


def proxmo_released(b, omega=1.0):
    value, out = returns(b), np.zeros(len(b["reward"]))
    vectors = tfidf(b["state"], lambda t: re.findall(r"\b\w\w+\b", t.lower()), b["state"])
    parts = episodes(b)
    for rows in groups(b):
        likeness = np.exp(vectors[rows] @ vectors[rows].T / 0.1)
        out[rows] = omega * (value[rows] - likeness @ value[rows] / likeness.sum(1))
        total, won = {}, {}
        for key in parts:
            for row in parts[key]:
                total[row] = sum(b["reward"][r] for r in parts[key])
                won[row] = any(b["success"][r] for r in parts[key])
        mean = np.mean([total[row] for row in rows])
        for row in rows:
            kept = 0.0 if len(rows) == 1 else mean
            out[row] += (total[row] - kept) * modulation(won[row], np.clip(mean, 0, 1))
    return out


def gae(b, value, lam=0.95):
    return td(b, value, lam, b["reward"])


def proxmo_td(b, lam=0.3, truncated=(), scale=1.0, **options):
    value = baseline(b, returns(b, scale), exclude="episode", **options)
    part = td(b, value, lam, scale * b["reward"], truncated)
    return of_episodes(b, zscore, modulation) + part


def ridge_values(b, ridge=3.0, width=10.0, history=0.5):
    value = returns(b)
    out = value.copy()
    for rows in groups(b):
        seen = with_history(b, rows, tfidf([b["state"][row] for row in rows]), history)
        steps = np.array([b["step"][row] for row in rows])
        apart = np.exp(-(((steps[:, None] - steps) / width) ** 2) / 2)
        kernel = (seen @ seen.T + 0.5) * apart
        names = [b["episode"][row] for row in rows]
        for name in dict.fromkeys(names):
            test = np.array([other == name for other in names])
            if test.all():
                continue
            train, known = ~test, value[rows[~test]]
            system = kernel[np.ix_(train, train)] + ridge * np.eye(train.sum())
            fit = np.linalg.solve(system, known - known.mean())
            out[rows[test]] = known.mean() + kernel[np.ix_(test, train)] @ fit
    return out


def proxmo_td_ridge(b, lam=0.3, smooth=None):
    part = td(b, ridge_values(b), lam, b["reward"])
    return of_episodes(b, zscore, modulation) + (smooth(b, part) if smooth else part)


def smoothed(b, part, state_tau=0.3, action_tau=0.1):
    out = np.zeros(len(part))
    for rows in groups(b):
        states, actions = (tfidf([b[name][row] for row in rows]) for name in ("state", "action"))
        logits = states @ states.T / state_tau + actions @ actions.T / action_tau
        weight = np.exp(logits - logits.max(1, keepdims=True))
        out[rows] = weight @ part[rows] / weight.sum(1)
    return out


def proxmo_td_smooth(b):
    return proxmo_td_ridge(b, smooth=smoothed)

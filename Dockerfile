# proxmo on a CPU.
#
#   docker build -t proxmo .
#   docker run --rm -it -v proxmo:/home/proxmo proxmo train --env ALFWorld-v0
#   docker run --rm -p 3000:3000 proxmo webshop serve --host 0.0.0.0
#
# Runs and the cached warm start live in /home/proxmo; the volume keeps them. PyPI's torch for Linux
# carries CUDA: to leave out several GB that a CPU has no use for, name PyTorch's index of CPU wheels with
# `--build-arg PIP_EXTRA_INDEX_URL=...`.
FROM python:3.11-slim

# A virtual environment, so that python.org's and Debian's own Python behave the same.
ENV PATH=/opt/venv/bin:$PATH OMP_WAIT_POLICY=PASSIVE
RUN python -m venv /opt/venv

# Dependencies first: nearly all of the image, and rebuilt only when these files change. The package
# itself is an empty stand-in here.
WORKDIR /src
COPY pyproject.toml setup.py constraints.txt LICENSE ./
ARG PIP_EXTRA_INDEX_URL
RUN mkdir cli && touch README.md cli/__init__.py \
    && pip install --no-cache-dir -c constraints.txt ".[cpu,api,webshop]" \
    && pip uninstall --yes proxmo

COPY . .
RUN pip install --no-cache-dir --no-deps . \
    && useradd --create-home --uid 1000 proxmo \
    && rm -rf /src

USER proxmo
WORKDIR /home/proxmo
ENTRYPOINT ["proxmo"]
CMD ["--help"]

"""The shop on the network: pages for people, a JSON API for programs, both over one store.

    proxmo webshop serve --port 3000

Needs the extra `webshop` (Flask, waitress, gunicorn); nothing outside this package imports it.
"""

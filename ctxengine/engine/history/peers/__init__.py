"""How other libraries and providers project history, as policies to compare with (design 8: replay lab).

Each is written from its documented behaviour and from nothing else. None of them ever builds a request that is sent: the lab
counts what such a request would hold and what a provider's cache would make of it.
"""

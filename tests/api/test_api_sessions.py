from __future__ import annotations
from tests.api.door import Door

def test_x(door: Door) -> None:
    s = door.open(title="Weather")
    a = door.post("sessions", {"model": {"provider":"anthropic","name":"m"},"agent":{"name":"a","version":"1"}}, once="k1")
    b = door.post("sessions", {"model": {"provider":"anthropic","name":"m"},"agent":{"name":"a","version":"1"}}, once="k1")
    print(a.json); 
    assert a.raw == b.raw
    print(door.get(f"sessions/{s}").ok()); print(door.get(f"sessions/{s}/plan").ok()); print(door.get("sessions").ok())
    r = door.run(s)
    print(door.events(s, "bodies=1"))
    print(door.get(f"sessions/{s}/items/3.0").ok())
    assert door.post(f"sessions/{s}/runs", {"message":"x"}).code == "run_open"

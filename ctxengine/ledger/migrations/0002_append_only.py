"""Events and audit entries are written once: triggers refuse every change."""

from __future__ import annotations

from django.db import migrations

_FORWARD = """
CREATE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  RAISE EXCEPTION '% is append-only: % refused', TG_TABLE_NAME, TG_OP USING ERRCODE = 'restrict_violation';
END $$;
CREATE TRIGGER event_append_only BEFORE UPDATE OR DELETE ON event
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
CREATE TRIGGER audit_append_only BEFORE UPDATE OR DELETE ON audit_entry
  FOR EACH ROW EXECUTE FUNCTION refuse_change();
"""

_BACKWARD = """
DROP TRIGGER event_append_only ON event;
DROP TRIGGER audit_append_only ON audit_entry;
DROP FUNCTION refuse_change();
"""


class Migration(migrations.Migration):
    """Triggers on the two append-only tables."""

    dependencies = [("ledger", "0001_initial")]

    operations = [migrations.RunSQL(_FORWARD, _BACKWARD)]

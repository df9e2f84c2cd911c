"""Django settings: read from the environment alone, with safe defaults (the README's table lists them).

Reading settings writes nothing and starts nothing; entry points do that (`ctxengine.site.commandline`).
"""

from __future__ import annotations

from datetime import timedelta

import csp.constants

from ctxengine.site import broker, env, keys, logs, places, provider_access
from ctxengine.site.databases import database_settings

BASE_DIR = places.CHECKOUT
CTX_DATA_DIR = places.data_folder()

DEBUG = env.flag("CTX_DEBUG", False)
SECRET_KEY = keys.secret_key(CTX_DATA_DIR)
CTX_FIELD_KEY = keys.field_key(CTX_DATA_DIR)
"""Encrypts fields at rest: 32 bytes in URL-safe base64."""

ALLOWED_HOSTS = env.hosts("CTX_ALLOWED_HOSTS", ("localhost", "127.0.0.1", "[::1]"))
CSRF_TRUSTED_ORIGINS = env.origins("CTX_CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_htmx",
    "django_filters",
    "template_partials",
    "axes",
    "csp",
    "ctxengine.site",
    "ctxengine.ledger",
    "inspector",
    "api",
]

MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
    "ctxengine.site.read_only.ReadOnly",
]

ROOT_URLCONF = "ctxengine.site.urls"
WSGI_APPLICATION = "ctxengine.site.wsgi.application"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# --- database ---------------------------------------------------------------------------------------------------------

DATABASES = {
    "default": database_settings(
        url=env.optional("DATABASE_URL"),
        data=CTX_DATA_DIR,
        pool_size=env.whole("CTX_DB_POOL", 0, least=0, most=500),
    )
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# --- people -----------------------------------------------------------------------------------------------------------

AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
AXES_LOCKOUT_CALLABLE = "inspector.pages.locked_out.locked_out"
AXES_FAILURE_LIMIT = env.whole("CTX_LOGIN_FAILURES", 8, least=3, most=1000)
AXES_COOLOFF_TIME = timedelta(minutes=15)
# One person behind an address must not lock out the others there, nor a stranger elsewhere that person.
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_ON_SUCCESS = True
AXES_VERBOSE = False

# --- browser security -------------------------------------------------------------------------------------------------

HTTPS = env.flag("CTX_HTTPS", False)
SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^(healthz|livez)$"]
SECURE_HSTS_SECONDS = 31_536_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
# Preloading binds the whole domain, not only this site: its owner asks for that, not we.
SILENCED_SYSTEM_CHECKS = ["security.W021"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if HTTPS else None
SECURE_REFERRER_POLICY = "same-origin"
SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_SECURE = HTTPS
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [csp.constants.SELF],
        "script-src": [csp.constants.SELF],
        "style-src": [csp.constants.SELF],
        "img-src": [csp.constants.SELF, "data:"],
        "connect-src": [csp.constants.SELF],
        "object-src": [csp.constants.NONE],
        "frame-ancestors": [csp.constants.NONE],
        "form-action": [csp.constants.SELF],
        "base-uri": [csp.constants.NONE],
    }
}
# Transcripts are long: what bounds a request is what one tool result may weigh.
DATA_UPLOAD_MAX_MEMORY_SIZE = env.whole(
    "CTX_MAX_BODY_BYTES", 64 * 1024 * 1024, least=64 * 1024, most=2**31
)

CTX_RATE_LIMIT = env.whole("CTX_RATE_LIMIT", 0, least=0, most=10**6)
"""Calls of one key in a minute, in each web process; 0 sets no limit."""

CTX_READ_ONLY = env.flag("CTX_READ_ONLY", False)
"""Whether every door refuses writes; signing in and proving still work."""
CTX_WEBHOOK_HOSTS = env.places("CTX_WEBHOOK_HOSTS")
"""The allow-list of alerts: hosts that may be told, by whoever makes a rule."""

# --- model providers --------------------------------------------------------------------------------------------------

CTX_PROVIDER_KEYS = provider_access.provider_keys()
CTX_PROVIDER_URLS = provider_access.provider_urls()
CTX_SUMMARY_PROVIDERS = provider_access.summary_providers()
CTX_EMBEDDER = env.matching(
    "CTX_EMBEDDER",
    "",
    r"([A-Za-z_]\w*\.)+[A-Za-z_]\w*",
    "a dotted path such as package.module.Class",
)
CTX_PROBE_HOSTED = env.choice("CTX_PROBE_HOSTED", "off", ("off", "full"))
"""The allow-list: a provider is called at its official address, or at the one listed here."""
CTX_BEDROCK_REGION = env.matching(
    "AWS_REGION", "us-east-1", r"[a-z]{2}(-[a-z]+)+-\d", "a region such as us-east-1"
)

# --- monitoring -------------------------------------------------------------------------------------------------------

CTX_METRICS_TOKEN = env.optional("CTX_METRICS_TOKEN")
"""Opens `/metrics` to its bearer; without it there is no such address."""
CTX_TRACE_CONTENT = env.choice(
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT",
    "NO_CONTENT",
    ("NO_CONTENT", "SPAN_ONLY", "EVENT_ONLY", "SPAN_AND_EVENT", "true", "false"),
)
"""Whether spans carry what the model said, masked; never what it thought."""

# --- static files -----------------------------------------------------------------------------------------------------

STATIC_URL = "/static/"
STATIC_ROOT = CTX_DATA_DIR / "static"
STATICFILES_DIRS = [path for path in [BASE_DIR / "static"] if path.is_dir()]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"
        if DEBUG
        else "whitenoise.storage.CompressedManifestStaticFilesStorage"
    },
}

# --- time and language ------------------------------------------------------------------------------------------------

USE_TZ = True
TIME_ZONE = "UTC"
LANGUAGE_CODE = "en"
USE_I18N = False

# --- REST -------------------------------------------------------------------------------------------------------------

# What belongs to one endpoint stands in `api/`; these are the defaults that no view of it may widen.
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "UNAUTHENTICATED_USER": None,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Context engine",
    "DESCRIPTION": "Sessions, runs, requests: what a model sees at each step, and why.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {"JobState": "ctxengine.ledger.models.job.JobState"},
}

# --- jobs -------------------------------------------------------------------------------------------------------------

CELERY_BROKER_URL = broker.broker_url(env.optional("CELERY_BROKER_URL"), data=CTX_DATA_DIR)
CTX_JOB_SENDER = "workers.send.send_job"
"""Hands a wake-up message to the broker; empty where nobody listens, such as in tests."""

LOGGING = logs.logging_settings(
    env.choice("CTX_LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR"))
)

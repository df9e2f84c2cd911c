"use strict";

// The key stays in this tab: nothing is written to the browser's storage.
const place = document.getElementById("docs");
window.SwaggerUIBundle({
  domNode: place,
  url: place.dataset.schema,
  deepLinking: true,
  persistAuthorization: false,
  validatorUrl: null,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
});

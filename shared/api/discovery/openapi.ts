/** OpenAPI over HTTP: the index, one document a group version, and the empty v2 that old clients accept. */
import { OPENAPI_V2, type OpenApi, type OpenApiDocument } from '../../kube/openapi/openapi.ts';
import type { HttpRequest, HttpResponse } from '../../ports/http.ts';
import type { StaticDocuments } from './static-documents.ts';

const FOR_EVER = 'public, max-age=31536000, immutable';

export function openApiAnswers(openApi: OpenApi): StaticDocuments {
  return (path, request) => {
    if (path === '/openapi/v2') {
      return { status: 200, headers: { 'content-type': OPENAPI_V2.contentType }, body: OPENAPI_V2.body };
    }
    if (path === '/openapi/v3') return sealed(openApi.index(), request, 'no-cache, private');
    const document = path.startsWith('/openapi/v3/') ? openApi.document(path.slice('/openapi/v3/'.length)) : undefined;
    if (document === undefined) return undefined;
    return sealed(document, request, request.query.get('hash') === document.hash ? FOR_EVER : 'no-cache, private');
  };
}

function sealed(document: OpenApiDocument, request: HttpRequest, cacheControl: string): HttpResponse {
  const etag = `"${document.hash}"`;
  const headers = { 'content-type': 'application/json', etag, 'cache-control': cacheControl };
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' };
  return { status: 200, headers, body: document.body };
}

/** OpenAPI over HTTP: the index, one document per group version, and v2 as JSON or, reduced, as protobuf. */
import { mediaRanges } from '../../../shared/api/response-body.ts';
import type { HttpRequest, HttpResponse } from '../../../shared/kubernetes/http.ts';
import type { OpenApi, OpenApiDocument } from '../openapi/openapi.ts';
import type { StaticDocuments } from './static-documents.ts';

const OPENAPI_V2_TYPE = 'application/com.github.proto-openapi.spec.v2.v1.0+protobuf';
const CACHED_FOREVER = 'public, max-age=31536000, immutable';

/** `load` is called at each request: few clients read these documents, which have the texts of all fields. */
export function openApiDocuments(load: () => Promise<OpenApi>): StaticDocuments {
  return async (path, request) => {
    const openApi = await load();
    if (path === '/openapi/v2') {
      if (acceptsJson(request)) return withEtag(openApi.swagger(), request, 'no-cache, private');
      return { status: 200, headers: { 'content-type': OPENAPI_V2_TYPE }, body: openApi.swaggerProtobuf() };
    }
    if (path === '/openapi/v3') return withEtag(openApi.index(), request, 'no-cache, private');
    const document = path.startsWith('/openapi/v3/') ? openApi.document(path.slice('/openapi/v3/'.length)) : undefined;
    if (document === undefined) return undefined;
    return withEtag(
      document,
      request,
      request.query.get('hash') === document.hash ? CACHED_FOREVER : 'no-cache, private',
    );
  };
}

const JSON_RANGES = new Set(['application/json', 'application/*', '*/*']);

/** False for a client that prefers protobuf at /openapi/v2. */
const acceptsJson = ({ headers }: HttpRequest): boolean =>
  JSON_RANGES.has(mediaRanges(headers['accept'])[0]?.type ?? '');

function withEtag(document: OpenApiDocument, request: HttpRequest, cacheControl: string): HttpResponse {
  const etag = `"${document.hash}"`;
  const headers = { 'content-type': 'application/json', etag, 'cache-control': cacheControl };
  if (request.headers['if-none-match'] === etag) return { status: 304, headers, body: '' };
  return { status: 200, headers, body: document.body };
}

/** Responses that depend on the path alone: version, discovery, health, OpenAPI. */

import { type HttpRequest, type HttpResponse, json } from '../../../shared/kubernetes/http.ts';
import { isHealthPath } from '../../../shared/kubernetes/request.ts';
import {
  aggregatedContentType,
  aggregatedDiscoveryDocument,
  apiGroupDocument,
  apiGroupListDocument,
  apiResourceListDocument,
  apiVersionsDocument,
  type BuildInfo,
  type Discovered,
  type DiscoveredResource,
  discovered,
  versionDocument,
  wantsAggregatedDiscovery,
} from './discovery.ts';

export type StaticDocuments = (
  path: string,
  request: HttpRequest,
) => HttpResponse | undefined | Promise<HttpResponse | undefined>;

/** @param customs kinds that definitions add, as of now: read for discovery alone */
export function staticDocuments(
  build: BuildInfo,
  openApi: StaticDocuments,
  customs: () => Promise<readonly DiscoveredResource[]>,
): StaticDocuments {
  return async (path, request) => {
    if (isHealthPath(path)) return { status: 200, headers: { 'content-type': 'text/plain' }, body: 'ok' };
    if (path === '/version') return json(200, versionDocument(build));
    if (path.startsWith('/openapi/')) return openApi(path, request);
    if (!path.startsWith('/api')) return undefined;
    // The core group has no kinds of definitions.
    const served = discovered(path.startsWith('/apis') ? await customs() : []);
    return path === '/api' || path === '/apis' ? root(served, path, request) : groupOrVersion(served, path);
  };
}

function root(served: Discovered, path: '/api' | '/apis', request: HttpRequest): HttpResponse {
  const aggregated = wantsAggregatedDiscovery(request.headers['accept']);
  if (aggregated !== undefined) {
    return json(200, aggregatedDiscoveryDocument(served, path === '/api' ? 'core' : 'named', aggregated), {
      'content-type': aggregatedContentType(aggregated),
    });
  }
  return json(
    200,
    path === '/api' ? apiVersionsDocument(served, request.headers['host'] ?? '') : apiGroupListDocument(served),
  );
}

function groupOrVersion(served: Discovered, path: string): HttpResponse | undefined {
  const [, first, second = '', third, ...more] = path.split('/');
  if (more.length > 0) return undefined;
  const answer =
    first === 'api' && third === undefined
      ? apiResourceListDocument(served, '', second)
      : first === 'apis' && third === undefined
        ? apiGroupDocument(served, second)
        : first === 'apis' && third !== undefined
          ? apiResourceListDocument(served, second, third)
          : undefined;
  return answer === undefined ? undefined : json(200, answer);
}

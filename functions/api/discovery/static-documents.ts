/** Responses that depend on the path alone: version, discovery, health, OpenAPI. */

import { isHealthPath } from '../../../shared/api/health-paths.ts';
import type { HttpRequest, HttpResponse } from '../../../shared/kubernetes/request/http.ts';
import { json } from '../../../shared/kubernetes/request/respond.ts';
import {
  aggregatedContentType,
  aggregatedDiscoveryDocument,
  apiGroupDocument,
  apiGroupListDocument,
  apiResourceListDocument,
  apiVersionsDocument,
  type BuildInfo,
  versionDocument,
  wantsAggregatedDiscovery,
} from './discovery.ts';

export type StaticDocuments = (
  path: string,
  request: HttpRequest,
) => HttpResponse | undefined | Promise<HttpResponse | undefined>;

export function staticDocuments(build: BuildInfo, openApi: StaticDocuments): StaticDocuments {
  return (path, request) => {
    if (isHealthPath(path)) return { status: 200, headers: { 'content-type': 'text/plain' }, body: 'ok' };
    if (path === '/version') return json(200, versionDocument(build));
    if (path.startsWith('/openapi/')) return openApi(path, request);
    if (path === '/api' || path === '/apis') return root(path, request);
    return groupOrVersion(path);
  };
}

function root(path: '/api' | '/apis', request: HttpRequest): HttpResponse {
  const aggregated = wantsAggregatedDiscovery(request.headers['accept']);
  if (aggregated !== undefined) {
    return json(200, aggregatedDiscoveryDocument(path === '/api' ? 'core' : 'named', aggregated), {
      'content-type': aggregatedContentType(aggregated),
    });
  }
  return json(200, path === '/api' ? apiVersionsDocument(request.headers['host'] ?? '') : apiGroupListDocument());
}

function groupOrVersion(path: string): HttpResponse | undefined {
  const [, first, second = '', third, ...more] = path.split('/');
  if (more.length > 0) return undefined;
  const answer =
    first === 'api' && third === undefined
      ? apiResourceListDocument('', second)
      : first === 'apis' && third === undefined
        ? apiGroupDocument(second)
        : first === 'apis' && third !== undefined
          ? apiResourceListDocument(second, third)
          : undefined;
  return answer === undefined ? undefined : json(200, answer);
}

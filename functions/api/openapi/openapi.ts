import { schemaOf as schemaOfKind } from '../../../shared/kinds/schemas.ts';
import { Components, type Describe } from './components.ts';
import { groupVersionPath, type OpenApiResource, resourcePaths, type SchemaOf } from './paths.ts';

import { definitionsOf, type OpenApiV3, swaggerOf } from './swagger.ts';
import { swaggerProtobuf } from './swagger-protobuf.ts';

export type { OpenApiResource } from './paths.ts';

/** One OpenAPI v3 document, ready to send as `application/json`. */
export interface OpenApiDocument {
  readonly body: string;
  /** Part of the URL in the index, which makes the document cacheable forever; also its ETag. */
  readonly hash: string;
}

export interface OpenApi {
  /** Answer to `/openapi/v3`: the group versions and where their documents are. */
  index(): OpenApiDocument;
  /** Answer to `/openapi/v3/<path>`, path as in `api/v1` or `apis/coordination.k8s.io/v1`. */
  document(path: string): OpenApiDocument | undefined;
  /** All documents as one of OpenAPI v2. */
  swagger(): OpenApiDocument;
  /** The parameters of PATCH, and the definitions of kinds that `base` has not, as OpenAPI v2 in protobuf. */
  swaggerProtobuf(): Uint8Array;
  /** Paths of all documents. */
  readonly paths: readonly string[];
  readonly resources: readonly OpenApiResource[];
}

export interface OpenApiSettings {
  readonly resources: readonly OpenApiResource[];
  /** Version of this server, shown in the documents. */
  readonly serverVersion: string;
  /** Digest of a text, safe in a URL. */
  readonly hash: (text: string) => string;
  /** Path prefix of the server, such as `/prod`; '' for none. */
  readonly pathPrefix?: string;
  readonly describe: Describe;
  readonly schemaOf?: SchemaOf;
  /** The documents of other kinds, which these are added to. */
  readonly base?: OpenApi;
}

/** OpenAPI v3 for these resources. A document is created at the first request, then cached. */
export function createOpenApi(settings: OpenApiSettings): OpenApi {
  const { serverVersion, hash, describe, pathPrefix = '', schemaOf = schemaOfKind, base } = settings;
  const resources = [...(base?.resources ?? []), ...settings.resources];
  const byPath = Map.groupBy(settings.resources, ({ group, version }) => groupVersionPath(group, version));
  const documents = new Map<string, OpenApiDocument>();
  let index: OpenApiDocument | undefined;

  const seal = (content: unknown): OpenApiDocument => {
    const body = JSON.stringify(content);
    return { body, hash: hash(body) };
  };

  const document = (path: string): OpenApiDocument | undefined => {
    const kept = documents.get(path);
    if (kept !== undefined) return kept;
    const ofGroup = byPath.get(path);
    if (ofGroup === undefined) return base?.document(path);
    const components = new Components(describe);
    const paths = Object.assign({}, ...ofGroup.map((resource) => resourcePaths(resource, schemaOf, components)));
    const made = seal({
      openapi: '3.0.0',
      info: { title: 'Nodekeeper', version: serverVersion },
      paths,
      components: { schemas: components.schemas },
    });
    documents.set(path, made);
    return made;
  };

  const contentOf = (path: string): OpenApiV3 => JSON.parse(document(path)?.body ?? '{}') as OpenApiV3;
  const allPaths = [...new Set([...byPath.keys(), ...(base?.paths ?? [])])].sort();
  let v2: OpenApiDocument | undefined;
  let v2Protobuf: Uint8Array | undefined;
  return {
    document,
    paths: allPaths,
    resources,
    swagger() {
      v2 ??= seal(swaggerOf(allPaths.map(contentOf), serverVersion));
      return v2;
    },
    swaggerProtobuf() {
      const added = base === undefined ? [] : [...byPath.keys()];
      v2Protobuf ??= swaggerProtobuf(resources, definitionsOf(added.map(contentOf)), serverVersion);
      return v2Protobuf;
    },
    index() {
      index ??= seal({
        paths: Object.fromEntries(
          allPaths.map((path) => [
            path,
            { serverRelativeURL: `${pathPrefix}/openapi/v3/${path}?hash=${document(path)?.hash ?? ''}` },
          ]),
        ),
      });
      return index;
    },
  };
}

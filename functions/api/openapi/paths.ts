import { defined } from '../../../shared/defined.ts';
import { upstream } from '../../../shared/kinds/upstream.ts';
import type { JsonObject } from '../../../shared/kubernetes/json.ts';
import { apiVersionOf } from '../../../shared/kubernetes/normal-form.ts';
import { type GroupVersionKind, kindStruct, type StructSchema } from '../../../shared/kubernetes/schema.ts';
import type { Components } from './components.ts';

/** What OpenAPI needs to know of a resource; a resource descriptor has it all. */
export interface OpenApiResource {
  /** '' is the core group. */
  readonly group: string;
  readonly version: string;
  /** Plural, as in paths. */
  readonly resource: string;
  readonly kind: string;
  readonly namespaced: boolean;
  readonly verbs: readonly string[];
  /** Set for a custom resource. */
  readonly custom?: { readonly schema: StructSchema };
  readonly subresources: readonly {
    readonly name: string;
    /** Kind of what is sent, where it is not the resource's own. */
    readonly kind?: string;
    readonly group?: string;
    readonly version?: string;
    readonly verbs: readonly string[];
  }[];
}

export type SchemaOf = (apiVersion: string, kind: string) => StructSchema | undefined;

interface Target {
  readonly struct: StructSchema;
  readonly gvk: GroupVersionKind;
  readonly tag: string;
  /** Media types of patches. */
  readonly patchBodies: readonly string[];
  /** Words for operationId: `CoreV1NamespacedPodEviction`. */
  readonly id: string;
}

const JSON_BODY = 'application/json';
const STRATEGIC_PATCH = 'application/strategic-merge-patch+json';
const PATCH_BODIES = [
  'application/json-patch+json',
  'application/merge-patch+json',
  STRATEGIC_PATCH,
  'application/apply-patch+yaml',
];

/** Path of a group version: `api/v1`, `apis/coordination.k8s.io/v1`. */
export function groupVersionPath(group: string, version: string): string {
  return group === '' ? `api/${version}` : `apis/${group}/${version}`;
}

/** The `paths` of one resource; adds the schemas they use to the components. */
export function resourcePaths(resource: OpenApiResource, schemaOf: SchemaOf, components: Components): JsonObject {
  const root = `/${groupVersionPath(resource.group, resource.version)}`;
  const collection = resource.namespaced
    ? `${root}/namespaces/{namespace}/${resource.resource}`
    : `${root}/${resource.resource}`;
  const target = targetOf(resource, resource.kind, resource.group, resource.version, '', schemaOf);
  const paths: JsonObject = {};
  const scope = resource.namespaced ? [NAMESPACE_PARAMETER] : [];
  const named = [...scope, NAME_PARAMETER];

  add(paths, collection, scope, collectionOperations(resource.verbs, target, components));
  if (resource.namespaced && resource.verbs.includes('list')) {
    const everywhere = { ...target, id: `${target.id}ForAllNamespaces` };
    add(paths, `${root}/${resource.resource}`, [], collectionOperations(['list'], everywhere, components));
  }
  add(paths, `${collection}/{name}`, named, objectOperations(resource.verbs, target, components));
  for (const subresource of resource.subresources) {
    const part = targetOf(
      resource,
      subresource.kind ?? resource.kind,
      subresource.group ?? resource.group,
      subresource.version ?? resource.version,
      subresource.name,
      schemaOf,
    );
    const operations = objectOperations(subresource.verbs, part, components);
    if (subresource.verbs.includes('create')) operations['post'] = write('post', 'create', part, components, 201);
    add(paths, `${collection}/{name}/${subresource.name}`, named, operations);
  }
  return paths;
}

function targetOf(
  resource: OpenApiResource,
  kind: string,
  group: string,
  version: string,
  subresource: string,
  schemaOf: SchemaOf,
): Target {
  const gvk = { group, version, kind };
  const apiVersion = apiVersionOf({ group, version });
  const tag = `${resource.group === '' ? 'core' : resource.group.split('.')[0]}_${resource.version}`;
  const scope = resource.namespaced ? 'Namespaced' : '';
  return {
    struct:
      (kind === resource.kind ? resource.custom?.schema : undefined) ?? schemaOf(apiVersion, kind) ?? unknownKind(gvk),
    gvk,
    tag,
    // kubectl sends the first of its patches that is listed here.
    patchBodies: resource.custom === undefined ? PATCH_BODIES : PATCH_BODIES.filter((type) => type !== STRATEGIC_PATCH),
    id: `${camel(tag)}${scope}${resource.kind}${camel(subresource)}`,
  };
}

/** A kind without a schema of ours: any object. */
function unknownKind(gvk: GroupVersionKind): StructSchema {
  const group = gvk.group === '' ? 'core' : gvk.group.split('.')[0];
  return kindStruct(`io.k8s.api.${group}.${gvk.version}.${gvk.kind}`, gvk, `A ${gvk.kind}.`, {});
}

function collectionOperations(verbs: readonly string[], target: Target, components: Components): JsonObject {
  const operations: JsonObject = {};
  if (verbs.includes('list')) {
    operations['get'] = operation('list', 'list', target, LIST_PARAMETERS, undefined, {
      200: answer(components.listRef(target.struct, upstream.struct('meta/v1.ListMeta'))),
    });
  }
  if (verbs.includes('create')) operations['post'] = write('post', 'create', target, components, 201);
  if (verbs.includes('deletecollection')) {
    operations['delete'] = operation(
      'deletecollection',
      'deleteCollection',
      target,
      [...LIST_PARAMETERS, ...DELETE_PARAMETERS],
      body([JSON_BODY], components.ref(upstream.struct('meta/v1.DeleteOptions')), false),
      { 200: answer(components.ref(upstream.struct('meta/v1.Status'))) },
    );
  }
  return operations;
}

function objectOperations(verbs: readonly string[], target: Target, components: Components): JsonObject {
  const operations: JsonObject = {};
  if (verbs.includes('get')) {
    operations['get'] = operation('get', 'read', target, [], undefined, { 200: answer(components.ref(target.struct)) });
  }
  if (verbs.includes('update')) operations['put'] = write('put', 'replace', target, components, 200);
  if (verbs.includes('patch')) {
    operations['patch'] = operation(
      'patch',
      'patch',
      target,
      [...WRITE_PARAMETERS, FORCE_PARAMETER],
      body(target.patchBodies, { description: 'A patch, in the form its content type names.', type: 'object' }, true),
      { 200: answer(components.ref(target.struct)), 201: answer(components.ref(target.struct)) },
    );
  }
  if (verbs.includes('delete')) {
    operations['delete'] = operation(
      'delete',
      'delete',
      target,
      DELETE_PARAMETERS,
      body([JSON_BODY], components.ref(upstream.struct('meta/v1.DeleteOptions')), false),
      { 200: answer(components.ref(upstream.struct('meta/v1.Status'))) },
    );
  }
  return operations;
}

function write(action: 'post' | 'put', word: string, target: Target, components: Components, code: number): JsonObject {
  return operation(action, word, target, WRITE_PARAMETERS, body([JSON_BODY], components.ref(target.struct), true), {
    [code]: answer(components.ref(target.struct)),
  });
}

function operation(
  action: string,
  word: string,
  target: Target,
  parameters: readonly JsonObject[],
  requestBody: JsonObject | undefined,
  responses: JsonObject,
): JsonObject {
  return {
    tags: [target.tag],
    operationId: `${word}${target.id}`,
    ...(parameters.length > 0 ? { parameters } : {}),
    ...defined({ requestBody }),
    responses: { ...responses, 401: { description: 'Unauthorized' } },
    'x-kubernetes-action': action,
    'x-kubernetes-group-version-kind': target.gvk,
  };
}

function add(paths: JsonObject, path: string, parameters: readonly JsonObject[], operations: JsonObject): void {
  if (Object.keys(operations).length === 0) return;
  paths[path] = { ...operations, parameters: [...parameters, PRETTY_PARAMETER] };
}

function answer(schema: JsonObject): JsonObject {
  return { description: 'OK', content: { [JSON_BODY]: { schema } } };
}

function body(mediaTypes: readonly string[], schema: JsonObject, required: boolean): JsonObject {
  return {
    content: Object.fromEntries(mediaTypes.map((mediaType) => [mediaType, { schema }])),
    ...(required ? { required } : {}),
  };
}

function inQuery(name: string, type: 'string' | 'integer' | 'boolean', description: string): JsonObject {
  return { name, in: 'query', description, schema: { type, uniqueItems: true } };
}

function inPath(name: string, description: string): JsonObject {
  return { name, in: 'path', description, required: true, schema: { type: 'string', uniqueItems: true } };
}

const NAME_PARAMETER = inPath('name', 'Name of the object.');
const NAMESPACE_PARAMETER = inPath('namespace', 'Namespace of the object.');
const PRETTY_PARAMETER = inQuery('pretty', 'string', 'With "true", the answer is indented.');
const DRY_RUN = inQuery('dryRun', 'string', 'With "All", checks everything and stores nothing.');

const WRITE_PARAMETERS: readonly JsonObject[] = [
  DRY_RUN,
  inQuery('fieldManager', 'string', 'Who makes the change, as recorded in managedFields.'),
  inQuery('fieldValidation', 'string', 'What to do with unknown and duplicate fields: Ignore, Warn or Strict.'),
];

const FORCE_PARAMETER = inQuery('force', 'boolean', 'For apply patches: takes over fields that others own.');

const DELETE_PARAMETERS: readonly JsonObject[] = [
  DRY_RUN,
  inQuery('gracePeriodSeconds', 'integer', 'Seconds the object has left; 0 is at once.'),
  inQuery('propagationPolicy', 'string', 'What happens to dependents: Orphan, Background or Foreground.'),
];

const LIST_PARAMETERS: readonly JsonObject[] = [
  inQuery('allowWatchBookmarks', 'boolean', 'Whether a watch may send bookmarks.'),
  inQuery('continue', 'string', 'Token of the page to go on from.'),
  inQuery('fieldSelector', 'string', 'Selects by fields.'),
  inQuery('labelSelector', 'string', 'Selects by labels.'),
  inQuery('limit', 'integer', 'Most objects in one page.'),
  inQuery('resourceVersion', 'string', 'Version to list at or to watch from.'),
  inQuery('resourceVersionMatch', 'string', 'How resourceVersion is meant.'),
  inQuery('sendInitialEvents', 'boolean', 'Whether a watch starts with the present state.'),
  inQuery('timeoutSeconds', 'integer', 'Longest duration of the request.'),
  inQuery('watch', 'boolean', 'Watches instead of listing.'),
];

function camel(words: string): string {
  return words
    .split(/[^a-zA-Z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('');
}

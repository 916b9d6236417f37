/** DELETE of one object and of a collection. */

import { admitByPolicies } from '../../../shared/admission/admit-by-policies.ts';
import { type Call, selectorsOf } from '../../../shared/api/call.ts';
import { type ListedPage, listObjects } from '../../../shared/api/resource-storage.ts';
import {
  compressedIfLarge,
  PLAIN_LIST_CHARACTERS_MAX,
  payloadBytes,
  RESPONSE_BYTES_MAX,
  shapeList,
  shapeObject,
} from '../../../shared/api/response-body.ts';
import { defined } from '../../../shared/defined.ts';
import { asDefinition, withTermination } from '../../../shared/kinds/customresourcedefinitions/definition.ts';
import { customresourcedefinitions } from '../../../shared/kinds/customresourcedefinitions/serve.ts';
import type { ResourceDescriptor } from '../../../shared/kinds/descriptor.ts';
import { isSystemPriorityClass } from '../../../shared/kinds/priorityclasses/defaults.ts';
import { priorityclasses } from '../../../shared/kinds/priorityclasses/serve.ts';
import { pods, storedAs } from '../../../shared/kinds/registry.ts';
import { isDefaultPolicy } from '../../../shared/kinds/roles/default-policies.ts';
import { upstream } from '../../../shared/kinds/upstream.ts';
import { invalidValue, notSupported } from '../../../shared/kubernetes/causes.ts';
import {
  type HttpRequest,
  type HttpResponse,
  isStatusError,
  json,
  warningHeaders,
} from '../../../shared/kubernetes/http.ts';
import {
  dryRunOf,
  isAskedFor,
  limitOf,
  optionsFault,
  type ResourceTarget,
  wholeNumberOf,
} from '../../../shared/kubernetes/request.ts';
import { decodeObject } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { admitWrite } from '../admission/admit-write.ts';
import { deleteNamespace } from '../admission/delete-namespace.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { type DecideDeletion, type DeletedObject, type DeleteOptions, deleteObject } from './delete-object.ts';
import { jsonList } from './read-calls.ts';
import { readObject } from './read-object.ts';
import type { WriteOptions } from './write-options.ts';

/** The parts of a DeleteOptions body that are used. */
export interface RequestedDelete {
  readonly options: DeleteOptions;
  /** The finalizer with which the object waits for its dependents. Absent: it does not wait (Background). */
  readonly waitsWith?: 'foregroundDeletion' | 'orphan';
  /** The request says what becomes of the dependents. */
  readonly namesPolicy: boolean;
  readonly dryRun: readonly unknown[];
}

const DELETE_OPTIONS = { kind: 'DeleteOptions', version: 'v1' } as const;
const DELETE_OPTIONS_TYPE = { apiVersion: 'v1', kind: DELETE_OPTIONS.kind } as const;

const isDryRun = ({ dryRun }: RequestedDelete): boolean => dryRunOf(new URLSearchParams(), 'DeleteOptions', dryRun);

const PROPAGATION_POLICIES = ['Foreground', 'Background', 'Orphan', 'nil'];

/** The members of DeleteOptions that are read. */
interface ReadDeleteOptions extends DeleteOptions {
  readonly dryRun?: readonly unknown[];
  readonly propagationPolicy?: string;
  readonly orphanDependents?: boolean;
}

/**
 * @param options DeleteOptions that passed their schema
 * @throws StatusError 422
 */
export function requestedDelete(options: object): RequestedDelete {
  const read: ReadDeleteOptions = options;
  const { gracePeriodSeconds, preconditions, dryRun, propagationPolicy, orphanDependents } = read;
  const causes: status.Cause[] = [];
  if (propagationPolicy !== undefined) {
    if (orphanDependents !== undefined) {
      const why = 'orphanDependents and deletionPropagation cannot be both set';
      causes.push(invalidValue('propagationPolicy', propagationPolicy, why));
    }
    if (!PROPAGATION_POLICIES.slice(0, -1).includes(propagationPolicy)) {
      causes.push(notSupported('propagationPolicy', propagationPolicy, PROPAGATION_POLICIES));
    }
  }
  if (causes.length > 0) throw optionsFault('DeleteOptions', causes);
  const waitsWith =
    propagationPolicy === 'Orphan' || orphanDependents === true
      ? 'orphan'
      : propagationPolicy === 'Foreground'
        ? 'foregroundDeletion'
        : undefined;
  return {
    options: defined({ gracePeriodSeconds, preconditions }),
    dryRun: dryRun ?? [],
    namesPolicy: propagationPolicy !== undefined || orphanDependents !== undefined,
    ...defined({ waitsWith } as const),
  };
}

/**
 * Objects of these do not wait for their dependents: they are not in the table of the garbage collector, or have a
 * deletion of their own.
 */
const NEVER_WAITING: ReadonlySet<string> = new Set([
  'bootstraptokens',
  'events',
  'leases',
  'namespaces',
  'nodeidentities',
  'nodes',
]);

/**
 * A DELETE of these orphans the pods by default, for old clients (DefaultGarbageCollectionPolicy of their strategies).
 */
const ORPHANING_OWNERS: ReadonlySet<string> = new Set(['jobs', 'replicationcontrollers']);

const COLLECTOR_FINALIZERS: readonly string[] = ['orphan', 'foregroundDeletion'];

/**
 * With Foreground and Orphan the object is marked, and removed by the garbage collector. A policy that the request
 * names replaces an earlier one. Source: deletionFinalizersForGarbageCollection in upstream's store.go.
 */
const byPolicy =
  (descriptor: ResourceDescriptor, { waitsWith, namesPolicy }: RequestedDelete): DecideDeletion =>
  async ({ metadata: { finalizers = [], deletionTimestamp } }) => {
    // The grace period of a pod has begun: its finalizers stay, as upstream.
    if (descriptor === pods && deletionTimestamp !== undefined) return {};
    const earlier = finalizers.find((each) => COLLECTOR_FINALIZERS.includes(each));
    const byDefault = earlier ?? (ORPHANING_OWNERS.has(descriptor.resource) ? 'orphan' : undefined);
    const wanted = namesPolicy ? waitsWith : byDefault;
    if (wanted === earlier) return {};
    const others = finalizers.filter((each) => !COLLECTOR_FINALIZERS.includes(each));
    return { finalizers: wanted === undefined ? others : [...others, wanted] };
  };

/** A definition is marked. The controller of definitions deletes its objects, and then removes it. */
const deletionOfDefinition =
  (nowMs: number): DecideDeletion =>
  async (old) => ({
    markOnly: old.metadata.deletionTimestamp === undefined,
    mark: (marked) => withTermination(asDefinition(marked), nowMs),
  });

/** The DeleteOptions of a request. The query is read only if there is no body, as upstream. */
async function deleteBodyOf({ headers, body, query }: HttpRequest): Promise<RequestedDelete> {
  if (body.byteLength > 0) {
    const read = await readObject(headers, body, DELETE_OPTIONS_TYPE);
    return requestedDelete(
      decodeObject(DELETE_OPTIONS, upstream.struct('meta/v1.DeleteOptions'), read, 'Ignore').object,
    );
  }
  return requestedDelete(
    defined({
      gracePeriodSeconds: wholeNumberOf(query, 'gracePeriodSeconds'),
      propagationPolicy: query.get('propagationPolicy') ?? undefined,
      orphanDependents: query.has('orphanDependents') ? isAskedFor(query, 'orphanDependents') : undefined,
      dryRun: query.has('dryRun') ? query.getAll('dryRun') : undefined,
    }),
  );
}

function deleteOne(
  dependencies: ServeDependencies,
  descriptor: ResourceDescriptor,
  target: ResourceTarget,
  requested: RequestedDelete,
  options: WriteOptions,
): Promise<DeletedObject> {
  if (descriptor.group === '' && descriptor.resource === 'namespaces') {
    return deleteNamespace(dependencies, target, requested.options, options);
  }
  if (descriptor === customresourcedefinitions) {
    return deleteObject(
      dependencies,
      descriptor,
      target,
      requested.options,
      options,
      deletionOfDefinition(options.nowMs),
    );
  }
  const decide = NEVER_WAITING.has(descriptor.resource) ? undefined : byPolicy(descriptor, requested);
  return deleteObject(dependencies, descriptor, target, requested.options, options, decide);
}

export async function remove(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const requested = await deleteBodyOf(request);
  const dryRun = isDryRun(requested);
  const { mutate: _mutate, warnings, ...admission } = admitWrite(dependencies, call, 'delete', { dryRun });
  const deleted = await deleteOne(dependencies, storedAs(descriptor), target, requested, {
    nowMs: call.nowMs,
    dryRun,
    ...admission,
  });
  return json(200, deletedBody(call, deleted), warningHeaders(warnings()));
}

/** Kinds that upstream answers with the deleted object itself (`ReturnDeletedObject` of their storage). */
const ANSWERED_WITH_OBJECT = new Set([
  'csidrivers',
  'csinodes',
  'persistentvolumeclaims',
  'persistentvolumes',
  'pods',
  'podtemplates',
  'resourcequotas',
  'serviceaccounts',
  'services',
  'storageclasses',
  'volumeattachments',
]);

/**
 * The response body, as upstream: the object itself for some kinds, or if it waits for its removal. Otherwise a Status
 * `Success` with its name.
 */
function deletedBody({ descriptor, shape, nowMs }: Call, { object, removed }: DeletedObject): unknown {
  if (!removed || ANSWERED_WITH_OBJECT.has(descriptor.resource)) return shapeObject(descriptor, object, shape, nowMs);
  return status.deleted(status.deletedDetails(descriptor, object.metadata.name ?? '', object.metadata.uid ?? ''));
}

/** Deletes the listed objects one by one, as upstream. Objects that are created in the meantime are not deleted. */
export async function removeCollection(dependencies: ServeDependencies, call: Call): Promise<HttpResponse> {
  const { descriptor, target, request } = call;
  const requested = await deleteBodyOf(request);
  const limit = limitOf(request.query);
  const pageAfter = (continueToken: string) =>
    listObjects(dependencies.storageOf(descriptor), descriptor, {
      namespace: target.namespace,
      limit,
      charactersMax: PLAIN_LIST_CHARACTERS_MAX,
      continueToken,
      ...selectorsOf(descriptor, request.query),
      nowMs: call.nowMs,
    });
  // The objects of the first page are answered. Of further ones only the names stay in memory.
  let page = await pageAfter(request.query.get('continue') ?? '');
  const listed = page;
  const names = page.items.map(({ metadata }) => metadata);
  while (limit === 0 && page.continueToken !== '') {
    page = await pageAfter(page.continueToken);
    names.push(...page.items.map(({ metadata: { namespace, name } }) => defined({ namespace, name })));
  }
  const dryRun = isDryRun(requested);
  for (const { namespace = '', name = '' } of names) {
    // A DELETE of a system class by name is refused, so a DELETE of the collection skips it.
    if (descriptor === priorityclasses && isSystemPriorityClass(name)) continue;
    if (isDefaultPolicy(descriptor, name)) continue;
    const one = { ...target, namespace, name };
    try {
      const { admit } = admitByPolicies(dependencies, { ...call, target: one, dryRun });
      await deleteOne(dependencies, storedAs(descriptor), one, requested, { nowMs: call.nowMs, dryRun, admit });
    } catch (error) {
      if (!isStatusError(error) || error.status.code !== 404) throw error;
    }
  }
  return listOfDeleted(dependencies, call, limit === 0 ? { ...listed, continueToken: '' } : listed);
}

/** As many of the objects as one response may have. */
async function listOfDeleted({ gzip }: ServeDependencies, call: Call, listed: ListedPage): Promise<HttpResponse> {
  const { descriptor, request, shape, nowMs } = call;
  for (let { items } = listed; ; items = items.slice(0, Math.floor(items.length / 2))) {
    const answer = await jsonList(200, shapeList(descriptor, { ...listed, items }, shape, nowMs));
    const sent = await compressedIfLarge(request, answer, gzip);
    if (items.length === 0 || payloadBytes(sent) <= RESPONSE_BYTES_MAX) return sent;
  }
}

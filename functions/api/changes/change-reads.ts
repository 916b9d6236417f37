/**
 * Answers ChangeReads (shared/watches/change-read.ts): who may read which resources.
 */

import { readsAsNode } from '../../../shared/access/authorize.ts';
import type { UnstoredRequest } from '../../../shared/api/call.ts';
import { resources } from '../../../shared/kinds/registry.ts';
import * as causes from '../../../shared/kubernetes/causes.ts';
import { type HttpResponse, json, warningHeaders } from '../../../shared/kubernetes/http.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import { apiVersionOf, listOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { withJsonBody } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { parseUint64 } from '../../../shared/kubernetes/whole-number.ts';
import { utf8Bytes } from '../../../shared/text.ts';
import {
  CHANGE_READS,
  CHANGES_BYTES_MAX,
  CHANGES_MAX,
  type ChangeRead,
  type ChangesOfResource,
  RESOURCES_MAX,
  type ResourceName,
} from '../../../shared/watches/change-read.ts';
import type { ServeDependencies } from '../dependencies.ts';
import { readCreatedOnly } from '../verbs/read-created-only.ts';
import { changeReads } from './kind.ts';
import { hasPeerPart, readPeers } from './peer-reads.ts';
import { readChanges } from './read-changes.ts';
import { followedNodes, readSite, type SiteCursor } from './site-reads.ts';

type Reads = Pick<ServeDependencies, 'authorizer' | 'changes' | 'readYaml' | 'storageOf' | 'clusterId' | 'history'>;

/** @throws StatusError 400, 403, 405, 406, 413, 415, 422 */
export async function answerChangeRead(dependencies: Reads, asked: UnstoredRequest): Promise<HttpResponse> {
  await asked.requireAccess();
  const request = await withJsonBody(asked.request, dependencies.readYaml);
  const { object, warnings } = await readCreatedOnly(changeReads, asked.target, request);
  const cursors = cursorsOf(object.spec);
  const rights = await Promise.all(cursors.map((cursor) => rightsTo(dependencies, asked, cursor)));
  const consistent = recordOf(object.spec)['consistent'] === true;
  const room = { changes: CHANGES_MAX, bytes: CHANGES_BYTES_MAX };
  // A copy of a part does not become whole by changes.
  const isPart = ({ bounds, from }: SiteCursor): boolean => bounds !== undefined || from !== undefined;
  const whole = cursors.filter((cursor, index) => rights[index]!.kind === 'whole' && !isPart(cursor));
  const texts = await readChanges(dependencies.changes, whole, room, consistent);
  const outcomes: string[] = [];
  for (const [index, cursor] of cursors.entries()) {
    const right = rights[index]!;
    if (right.kind === 'none') outcomes.push(JSON.stringify(right.refusal));
    else if (right.kind === 'site')
      outcomes.push(await readSite(dependencies, cursor, right.nodeNames, { room, consistent }));
    else if (right.kind === 'peers') outcomes.push(await readPeers(dependencies, cursor, { room, consistent }));
    else outcomes.push(isPart(cursor) ? expired(cursor) : texts.shift()!);
  }
  const head: ChangeRead = {
    apiVersion: apiVersionOf(CHANGE_READS),
    kind: CHANGE_READS.kind,
    metadata: { ...object.metadata, creationTimestamp: null },
    spec: {
      resources: cursors.map(({ after, ...others }) => ({ ...others, after: String(after) })),
      ...(consistent && { consistent }),
    },
  };
  const answer = json(201, head, warningHeaders(warnings));
  const { clusterId } = dependencies;
  const id = clusterId === undefined ? '' : `"clusterId":${JSON.stringify(clusterId)},`;
  // The changes are JSON already.
  const history = `"history":${JSON.stringify(await dependencies.history())},`;
  const answered = `"status":{${id}${history}"resources":[${outcomes.join(',')}]}`;
  return { ...answer, body: `${String(answer.body).slice(0, -1)},${answered}}` };
}

const expired = ({ group, resource }: ResourceName): string =>
  JSON.stringify({ group, resource, outcome: 'expired' } satisfies ChangesOfResource);

/** Characters of two hashes and a version, and more. */
const BOUNDS_LENGTH_MAX = 200;

/** A namespace and a name. */
const FROM_BYTES_MAX = 2 * NAME_LENGTH_MAX;

/** @throws StatusError 422 */
function cursorsOf(spec: unknown): readonly SiteCursor[] {
  const field = 'spec.resources';
  const listed = listOf(recordOf(spec)['resources']).map(recordOf);
  if (listed.length === 0) throw status.invalid(CHANGE_READS, '', [causes.required(field)]);
  if (listed.length > RESOURCES_MAX) {
    throw status.invalid(CHANGE_READS, '', [causes.tooMany(field, listed.length, RESOURCES_MAX)]);
  }
  const seen = new Set<string>();
  const faults: status.Cause[] = [];
  const cursors = listed.map((each, index): SiteCursor => {
    const at = `${field}[${index}]`;
    const [group, resource, after] = [textOf(each['group']), textOf(each['resource']), textOf(each['after'])];
    const key = `${group}/${resource}`;
    const parsed = parseUint64(after);
    if (resource === '') faults.push(causes.required(`${at}.resource`));
    // They are in the answer.
    else if (key.length > NAME_LENGTH_MAX) faults.push(causes.tooLong(`${at}.resource`, NAME_LENGTH_MAX));
    else if (seen.has(key)) faults.push(causes.duplicate(at, key));
    if (parsed.kind === 'malformed') faults.push(causes.invalidValue(`${at}.after`, after, parsed.message));
    seen.add(key);
    const [bounds, from] = [each['bounds'], each['from']];
    if (textOf(bounds).length > BOUNDS_LENGTH_MAX) faults.push(causes.tooLong(`${at}.bounds`, BOUNDS_LENGTH_MAX));
    if (from !== undefined && (textOf(from) === '' || utf8Bytes(textOf(from)) > FROM_BYTES_MAX)) {
      faults.push(causes.invalidValue(`${at}.from`, textOf(from), 'must be `next` of a page'));
    }
    return {
      ...{ group, resource, after: parsed.kind === 'parsed' ? parsed.value : 0 },
      ...(bounds !== undefined && { bounds: textOf(bounds) }),
      ...(from !== undefined && { from: textOf(from) }),
    };
  });
  if (faults.length > 0) throw status.invalid(CHANGE_READS, '', faults);
  return cursors;
}

type Refusal = Extract<ChangesOfResource, { readonly outcome: 'forbidden' | 'notServed' }>;

type Rights =
  | { readonly kind: 'whole' }
  /** To what belongs to these nodes. */
  | { readonly kind: 'site'; readonly nodeNames: readonly string[] }
  /** To the parts that NetworkPolicies are about. */
  | { readonly kind: 'peers' }
  | { readonly kind: 'none'; readonly refusal: Refusal };

async function rightsTo(
  { storageOf, authorizer }: Reads,
  { user, nowMs }: UnstoredRequest,
  { group, resource }: ResourceName,
): Promise<Rights> {
  const notServed = (message: string): Rights => ({
    kind: 'none',
    refusal: { group, resource, outcome: 'notServed', message },
  });
  const served = resources.filter((each) => each.group === group && each.resource === resource);
  const stored = served.find((each) => each.servedFrom === undefined);
  const { servedFrom } = served[0] ?? {};
  if (stored === undefined) {
    return notServed(
      servedFrom === undefined
        ? 'there is no such resource'
        : `its objects are those of ${servedFrom.resource} in API group ${status.quote(servedFrom.group)}`,
    );
  }
  if (!stored.verbs.includes('watch') || storageOf(stored).readsInsteadOfLog?.('') === true) {
    return notServed('it has no change log');
  }
  for (const verb of ['list', 'watch']) {
    const question = { verb, group, resource, subresource: '', namespace: '', name: '' };
    const access = await authorizer.authorize(user, question, nowMs);
    if (access.allowed) continue;
    const nodeNames = await followedNodes(authorizer, user, { group, resource }, nowMs);
    if (nodeNames.length > 0) return { kind: 'site', nodeNames };
    if (readsAsNode(user) !== undefined && hasPeerPart({ group, resource })) return { kind: 'peers' };
    const { message } = status.accessDenied({ user: user.username, verb, target: stored }, access.reason);
    return { kind: 'none', refusal: { group, resource, outcome: 'forbidden', message } };
  }
  return { kind: 'whole' };
}

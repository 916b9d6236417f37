/**
 * Answers ChangeReads (shared/watches/change-read.ts). One read of all heads finds the resources that have changed.
 * They are read one after the other, in the order of the request, while the answer has room.
 */

import type { ReadDependencies, UnstoredRequest } from '../../../shared/api/call.ts';
import { withJsonBody } from '../../../shared/api/yaml-body.ts';
import { defined } from '../../../shared/defined.ts';
import { resources } from '../../../shared/kinds/registry.ts';
import { apiVersionOf } from '../../../shared/kubernetes/api-version.ts';
import * as causes from '../../../shared/kubernetes/causes.ts';
import { NAME_LENGTH_MAX } from '../../../shared/kubernetes/kubernetes.ts';
import { listOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import type { HttpResponse } from '../../../shared/kubernetes/request/http.ts';
import { json, warningHeaders } from '../../../shared/kubernetes/request/respond.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { parseUint64 } from '../../../shared/kubernetes/whole-number.ts';
import type { LogCursor } from '../../../shared/store/change-log.ts';
import type { ObjectChange } from '../../../shared/store/object-record.ts';
import {
  CHANGE_READS,
  CHANGES_BYTES_MAX,
  CHANGES_MAX,
  type ChangeRead,
  type ChangesOfResource,
  RESOURCES_MAX,
  type ReadChange,
  type ResourceName,
} from '../../../shared/watches/change-read.ts';
import { type CreatedOnly, readCreatedOnly } from '../verbs/read-created-only.ts';

export const changeReads: CreatedOnly = {
  ...CHANGE_READS,
  singular: CHANGE_READS.kind.toLowerCase(),
  namespaced: false,
  verbs: ['create'],
};

type Reads = Pick<ReadDependencies, 'authorizer' | 'changes' | 'readYaml' | 'storageOf'>;

/** @throws StatusError 400, 403, 405, 406, 413, 415, 422 */
export async function answerChangeRead(dependencies: Reads, asked: UnstoredRequest): Promise<HttpResponse> {
  await asked.requireAccess();
  const request = await withJsonBody(asked.request, dependencies.readYaml);
  const { object, warnings } = await readCreatedOnly(changeReads, asked.target, request);
  const cursors = cursorsOf(object.spec);
  const refusals = await Promise.all(cursors.map((cursor) => refusalOf(dependencies, asked, cursor)));
  const readable = cursors.filter((_, index) => refusals[index] === undefined);
  const texts = await readAll(dependencies.changes, readable);
  const outcomes = refusals.map((refusal) => (refusal === undefined ? texts.shift() : JSON.stringify(refusal)));
  const head: ChangeRead = {
    apiVersion: apiVersionOf(CHANGE_READS),
    kind: CHANGE_READS.kind,
    metadata: { ...object.metadata, creationTimestamp: null },
    spec: { resources: cursors.map(({ after, ...name }) => ({ ...name, after: String(after) })) },
  };
  const answer = json(201, head, warningHeaders(warnings));
  // The changes are JSON already.
  return { ...answer, body: `${String(answer.body).slice(0, -1)},"status":{"resources":[${outcomes.join(',')}]}}` };
}

type Cursor = ResourceName & LogCursor;

/** @throws StatusError 422 */
function cursorsOf(spec: unknown): readonly Cursor[] {
  const field = 'spec.resources';
  const listed = listOf(recordOf(spec)['resources']).map(recordOf);
  if (listed.length === 0) throw status.invalid(CHANGE_READS, '', [causes.required(field)]);
  if (listed.length > RESOURCES_MAX) {
    throw status.invalid(CHANGE_READS, '', [causes.tooMany(field, listed.length, RESOURCES_MAX)]);
  }
  const seen = new Set<string>();
  const faults: status.Cause[] = [];
  const cursors = listed.map((each, index): Cursor => {
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
    return { group, resource, after: parsed.kind === 'parsed' ? parsed.value : 0 };
  });
  if (faults.length > 0) throw status.invalid(CHANGE_READS, '', faults);
  return cursors;
}

type Refusal = Extract<ChangesOfResource, { readonly outcome: 'forbidden' | 'notServed' }>;

/** Why no changes of a resource are returned. undefined: they are. */
async function refusalOf(
  { storageOf, authorizer }: Reads,
  { user, nowMs }: UnstoredRequest,
  { group, resource }: ResourceName,
): Promise<Refusal | undefined> {
  const notServed = (message: string): Refusal => ({ group, resource, outcome: 'notServed', message });
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
    const { message } = status.accessDenied({ user: user.username, verb, target: stored }, access.reason);
    return { group, resource, outcome: 'forbidden', message };
  }
  return undefined;
}

/** The outcomes in JSON, in the order of the cursors. */
async function readAll(log: Reads['changes'], cursors: readonly Cursor[]): Promise<string[]> {
  const room = { changes: CHANGES_MAX, bytes: CHANGES_BYTES_MAX };
  const quiet = await log.areQuiet(cursors);
  const outcomes: string[] = [];
  for (const [index, cursor] of cursors.entries()) {
    const isRead = quiet[index] !== true && room.changes > 0 && room.bytes > 0;
    outcomes.push(isRead ? await readOne(log, cursor, room) : outcomeText(cursor, cursor.after, quiet[index] !== true));
  }
  return outcomes;
}

/** What fits into `room`, which becomes smaller. The first change of an answer always fits: OBJECT_TEXT_MAX. */
async function readOne(
  log: Reads['changes'],
  cursor: Cursor,
  room: { changes: number; bytes: number },
): Promise<string> {
  const texts: string[] = [];
  const outcome = await log.readChanges({
    ...cursor,
    limit: room.changes,
    eager: true,
    accepts(change) {
      const text = textOfChange(change);
      const bytes = Buffer.byteLength(text);
      if (bytes > room.bytes) {
        // The answer ends here: a resource with large objects would otherwise never have its turn.
        room.bytes = 0;
        return false;
      }
      room.bytes -= bytes;
      room.changes -= 1;
      texts.push(text);
      return true;
    },
  });
  if (outcome.kind === 'expired') {
    const { group, resource } = cursor;
    return JSON.stringify({ group, resource, outcome: 'expired' } satisfies ChangesOfResource);
  }
  return outcomeText(cursor, outcome.through, outcome.more, texts);
}

const textOfChange = ({ type, object, previous }: ObjectChange): string =>
  JSON.stringify({ type, object, ...defined({ previous }) } satisfies ReadChange);

function outcomeText(
  { group, resource }: ResourceName,
  through: number,
  more: boolean,
  texts: readonly string[] = [],
): string {
  const head: ChangesOfResource = { group, resource, outcome: 'changes', through: String(through), more, changes: [] };
  return `${JSON.stringify(head).slice(0, -2)}${texts.join(',')}]}`;
}

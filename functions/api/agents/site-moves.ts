/**
 * What the hub of a site has decided about a pod (shared/agents/site-move.ts): its copy, which the hub has started
 * without the cluster, is put in the place of the original; or the pod is deleted, because no machine runs it.
 *
 * For a copy, one transaction deletes the original and creates the copy, so whoever counts pods counts one. Its
 * conditions are the versions that were read, so a deletion that was stored before it wins. The copy is made of the
 * cluster's own object: the hub chooses its uid and its machine, nothing else. A hub decides only about pods that a
 * binding assigned to it, and moves them only to machines that obey it and that a policy names.
 *
 * The copy runs already. So nothing asks whether its machine has room: the transaction counts as a binding of the node
 * (shared/fleet/nodes/node-use.ts), and the agent refuses pods that were bound there meanwhile and do not fit.
 *
 * A repeated request finds the copy. After the copy was deleted it finds no original, so it creates none again. A
 * refusal may be followed by an earlier request that was late and is granted: the hub then has the copy deleted, too.
 */

import type { SiteMove, SiteMoveAnswer } from '../../../shared/agents/site-move.ts';
import type { UnstoredRequest } from '../../../shared/api/call.ts';
import { aboutPod, type DecisionAct } from '../../../shared/decisions/decision-record.ts';
import type { Ledger } from '../../../shared/decisions/ledger.ts';
import { isTerminated } from '../../../shared/kinds/pods/resource.ts';
import { copyName, copyOf } from '../../../shared/kinds/pods/site-copy.ts';
import { hubOfMachine, siteHubOf } from '../../../shared/kinds/pods/site-permit.ts';
import { nodes, pods, sitepolicies } from '../../../shared/kinds/registry.ts';
import { isNamed, SITE_POLICIES_MAX } from '../../../shared/kinds/site-policies/site-hub.ts';
import type { KubePod } from '../../../shared/kinds/types.ts';
import { type HttpRequest, type HttpResponse, isStatusError, json } from '../../../shared/kubernetes/http.ts';
import { listOf, recordOf, textOf } from '../../../shared/kubernetes/normal-form.ts';
import { mediaTypeOf, readJson, refuseTooLarge } from '../../../shared/kubernetes/request-body.ts';
import * as status from '../../../shared/kubernetes/status.ts';
import { formatTime, parseTimeMs } from '../../../shared/kubernetes/time.ts';
import type { ApiDependencies } from '../dependencies.ts';
import { deleteObject } from '../verbs/delete-object.ts';
import { pauseBefore, WRITE_ATTEMPTS_MAX } from '../verbs/write-options.ts';

/** A pod that is moved on again and again, without the cluster. */
const FROM_MAX = 100;
/** Longest text of a hub in a record. */
const WHY_MAX = 200;
const UID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

export interface SiteMoveDependencies extends ApiDependencies {
  readonly ledger: Pick<Ledger, 'recordOnce'>;
}

/** @throws StatusError 400, 403, 405, 409, 413, 415 */
export async function answerSiteMove(
  dependencies: SiteMoveDependencies,
  asked: UnstoredRequest,
): Promise<HttpResponse> {
  await asked.requireAccess();
  asked.audit();
  const { target, request, user, nowMs } = asked;
  if (request.method !== 'POST' || target.name !== '' || target.subresource !== '') throw status.methodNotAllowedHere();
  const answer: SiteMoveAnswer = await decide(dependencies, moveOf(request), { hub: user.username, nowMs });
  return json(200, answer);
}

async function decide(
  dependencies: SiteMoveDependencies,
  move: SiteMove,
  by: { readonly hub: string; readonly nowMs: number },
): Promise<SiteMoveAnswer> {
  const { namespace, name, from, copy: to } = move;
  const storage = dependencies.storageOf(pods);
  const names = from.map((each, index) => (index === 0 ? name : copyName(name, each)));
  const record = recorder(dependencies, move, by);
  for (let attempt = 1; attempt <= WRITE_ATTEMPTS_MAX; attempt += 1) {
    if (attempt > 1) await pauseBefore(dependencies, attempt);
    const copy = to && (await storage.get(namespace, copyName(name, to.uid)));
    if (copy !== undefined && copy.metadata.uid === to?.uid) {
      await record.merged(copy);
      return { outcome: 'done' };
    }
    const found: readonly (KubePod | undefined)[] = await Promise.all(
      names.map((each) => storage.get(namespace, each)),
    );
    const pod = found.find((each, index) => each?.metadata.uid === from[index]);
    if (to === undefined) {
      if (pod === undefined) return { outcome: 'done' };
      if (siteHubOf(pod) !== by.hub) return { outcome: 'refused', reason: notItsPod(by.hub) };
      await record.decided(pod);
      await deleteNow(dependencies, pod, by.nowMs);
      return { outcome: 'done' };
    }
    const reason = pod === undefined ? GONE : await refusal(dependencies, by.hub, pod, to.nodeName);
    if (pod === undefined || reason !== undefined) {
      // A hub writes about its own pods alone.
      if (pod === undefined || siteHubOf(pod) === by.hub) await record.refused(reason ?? GONE);
      return { outcome: 'refused', reason: reason ?? GONE };
    }
    await record.decided(pod);
    const made = copyOf(pod, { name, uid: from[0]! }, to);
    const created = { ...made, metadata: { ...made.metadata, creationTimestamp: formatTime(by.nowMs) } };
    const ref = { resource: 'pods', namespace, name: pod.metadata.name ?? '' };
    const outcome = await storage.create(created, [{ kind: 'delete', ref, previous: pod }]);
    if (outcome.kind === 'written') {
      await record.merged(outcome.object);
      return { outcome: 'done' };
    }
  }
  throw status.conflict(pods, name, 'the pod keeps changing');
}

const GONE = 'the pod no longer exists';
const notItsPod = (hub: string): string => `${hub} does not decide about the pod`;

/** Without a grace period. Finalizers keep their object, which is not in the way of another pod. */
async function deleteNow(dependencies: SiteMoveDependencies, { metadata }: KubePod, nowMs: number): Promise<void> {
  const { namespace = '', name = '', uid = '' } = metadata;
  const target = { group: '', version: 'v1', resource: 'pods', subresource: '', namespace, name };
  const requested = { gracePeriodSeconds: 0, preconditions: { uid } };
  await deleteObject(dependencies, pods, target, requested, { nowMs, dryRun: false }).catch((error: unknown) => {
    // Somebody else has deleted it.
    if (!isStatusError(error) || error.status.code !== 404) throw error;
  });
}

/** Why the cluster keeps its own decision; undefined: the copy may be in the place of the pod. */
async function refusal(
  { storageOf }: SiteMoveDependencies,
  hub: string,
  pod: KubePod,
  nodeName: string,
): Promise<string | undefined> {
  if (siteHubOf(pod) !== hub) return notItsPod(hub);
  if (pod.metadata.deletionTimestamp !== undefined) return 'the pod was deleted';
  if (isTerminated(pod)) return 'the pod has terminated';
  if ((pod.metadata.finalizers ?? []).length > 0) return 'the pod has finalizers';
  const [node, { items }] = await Promise.all([
    storageOf(nodes).get('', nodeName),
    storageOf(sitepolicies).list({ namespace: '', limit: SITE_POLICIES_MAX }),
  ]);
  const target = { name: nodeName, siteHub: node && hubOfMachine(node) };
  return target.siteHub === hub && isNamed(target, pod.metadata.namespace ?? '', items)
    ? undefined
    : `no SitePolicy lets ${hub} move it to ${nodeName}, or that machine does not obey it`;
}

/**
 * Facts, for `explain`. The decision of the hub has its own time, unless that is in the future. A repeated request
 * records nothing again.
 */
function recorder(
  { ledger }: SiteMoveDependencies,
  { namespace, name, from, copy, decidedAt, why }: SiteMove,
  { hub, nowMs }: { readonly hub: string; readonly nowMs: number },
) {
  const decidedAtMs = Math.min(nowMs, parseTimeMs(decidedAt) ?? nowMs);
  const original = { namespace, name, podUid: from[0]! };
  const to = copy && { name: copyName(name, copy.uid), ...copy };
  const say = async (act: DecisionAct, about: typeof original, atMs: number, reason: string): Promise<void> => {
    const fact = { rule: 'fact', inputs: {}, outcome: {} } as const;
    // The time of a repeated request differs.
    const once = { atMs: decidedAtMs, key: to?.uid ?? about.podUid };
    await ledger.recordOnce({ act, about: aboutPod(about), atMs, reason, ...fact }, once);
  };
  return {
    decided: (pod: KubePod) =>
      to === undefined
        ? say('PodGivenUp', original, decidedAtMs, `${hub}: ${why}; the cluster deletes the pod`)
        : say(
            'PodMoved',
            original,
            decidedAtMs,
            `${hub}: from node ${pod.spec?.nodeName} to ${to.nodeName} as ${to.name}, without the cluster: ${why}`,
          ),
    refused: (reason: string) =>
      say('PodMoveRefused', original, nowMs, `the copy ${to?.name} on node ${to?.nodeName} is withdrawn: ${reason}`),
    merged: (made: KubePod) =>
      say(
        'PodMoveMerged',
        { namespace, name: made.metadata.name ?? '', podUid: made.metadata.uid ?? '' },
        nowMs,
        `in the place of pod ${name} (uid ${original.podUid}), which ${hub} moved at ${formatTime(decidedAtMs)}: ${why}`,
      ),
  };
}

function moveOf({ headers, body }: Pick<HttpRequest, 'headers' | 'body'>): SiteMove {
  if (mediaTypeOf(headers) !== 'application/json') throw status.unsupportedMediaType(['application/json']);
  refuseTooLarge(body);
  const value = recordOf(readJson(body).value);
  const text = (name: string): string => textOf(value[name]);
  const from = listOf(value['from']).map(textOf);
  if (from.length === 0 || from.length > FROM_MAX || from.includes('')) {
    throw status.badRequest(`from must have 1 to ${FROM_MAX} uids`);
  }
  const said = { decidedAt: text('decidedAt'), why: text('why').slice(0, WHY_MAX) };
  const pod = { namespace: text('namespace'), name: text('name'), from, ...said };
  if (pod.namespace === '' || pod.name === '') throw status.badRequest('namespace and name must not be empty');
  if (value['copy'] === undefined) return pod;
  const { uid, nodeName } = recordOf(value['copy']);
  const copy = { uid: textOf(uid), nodeName: textOf(nodeName) };
  if (copy.nodeName === '') throw status.badRequest('copy.nodeName must not be empty');
  if (!UID.test(copy.uid)) throw status.badRequest('copy.uid must be a random UUID');
  return { ...pod, copy };
}

/**
 * Policies and webhooks of the cluster for objects that controllers create: as for a request of the controller's
 * account.
 *
 * A slow webhook delays the owners that it is asked for. At most WAITERS_MAX syncs wait for answers at the same time,
 * for WAIT_MS each, and the others for SHORT_WAIT_MS. What has no answer then is asked on: the owner is synced again,
 * and finds the answer in memory. So the owners behind those of a webhook that hangs wait for about 12 ms per owner.
 *
 * Bounds: the time of a request for all calls about an object (admission-webhooks.ts); QUESTIONS_MAX owners in memory,
 * NAMESPACE_QUESTIONS_MAX of one namespace, with the objects of one transaction each. An owner beyond them asks when
 * others have their answers.
 *
 * Concurrency: two syncs of an owner ask once, also about other objects: the later one asks when the question of the
 * earlier one has ended. An answer is used once: for an object that is created again, and after a
 * transaction that lost to another one, the question is asked again. A function that is frozen or ended between two
 * syncs loses the question, and asks again. Policies without webhooks (compose-admission.ts) answer within the first
 * sync.
 */

import { serviceAccountInfo } from '../access/account-name.ts';
import { type Backoff, backoffMs } from '../backoff.ts';
import type { Clock } from '../clock.ts';
import { defined } from '../defined.ts';
import type { ResourceDescriptor } from '../kinds/descriptor.ts';
import type { CountedResource } from '../kinds/quotas/quota.ts';
import { resources } from '../kinds/registry.ts';
import type { KubeObject } from '../kinds/types.ts';
import { isStatusError } from '../kubernetes/http.ts';
import { invalid } from '../kubernetes/status.ts';
import type { PolicyAdmission } from './admit-by-policies.ts';
import type { AdmittedCall } from './admitted-write.ts';
import { type AdmitObjects, CREATOR_ACCOUNTS, type Creation, type Creator, type MadeObject } from './created-object.ts';

const WAITERS_MAX = 4;
const WAIT_MS = 1_000;
const SHORT_WAIT_MS = 50;
const QUESTIONS_MAX = 256;
/** Of one namespace. */
const NAMESPACE_QUESTIONS_MAX = 64;
/** An answer that no sync used by then is of another time. Milliseconds, from the question. */
const ANSWER_LIVES_MS = 60_000;
/** Until a sync looks for an answer. A tick follows within a period. Milliseconds. */
const LOOK_MS = 1_000;
/** Until a refused object is tried again. */
const RETRIES: Backoff = { firstMs: 5_000, limitMs: 60_000 };

export interface ControllerObjectParts {
  readonly admission: (call: AdmittedCall) => Pick<PolicyAdmission, 'admit' | 'mutate'>;
  readonly clock: Clock;
  /** Waits. Milliseconds. */
  readonly pause: (milliseconds: number) => Promise<unknown>;
}

interface Question {
  readonly namespace: string;
  /** The objects, without what differs between two syncs. */
  readonly text: string;
  readonly askedAtMs: number;
  readonly answer: Promise<readonly Creation[]>;
  /** Never rejects. */
  readonly ended: Promise<void>;
  isAnswered: boolean;
}

export function controllerObjects({ admission, clock, pause }: ControllerObjectParts): AdmitObjects {
  /** By the uid of the owner. */
  const questions = new Map<string, Question>();
  const failures = new Map<string, { readonly count: number; readonly message: string }>();
  let waiters = 0;

  async function admitted(creator: Creator, descriptor: ResourceDescriptor, made: MadeObject): Promise<Creation> {
    const { admit, mutate } = admission(callOf(creator, descriptor, made.object, clock.nowMs()));
    try {
      const mutated = await mutate(made.object, undefined);
      const complete = mutated === made.object ? made : made.complete(mutated);
      if (complete.kind === 'refused') return complete;
      const causes = complete === made ? [] : descriptor.validate(complete.object, CREATE);
      if (causes.length > 0) throw invalid(descriptor, made.object.metadata.name ?? '', causes);
      await admit(complete.object, undefined);
      return complete;
    } catch (error) {
      if (!isStatusError(error)) throw error;
      return { kind: 'refused', message: error.message };
    }
  }

  function ask(creator: Creator, of: CountedResource, made: readonly MadeObject[], text: string): Question {
    const descriptor = descriptorOf(of);
    const answer = Promise.all(made.map((each) => admitted(creator, descriptor, each)));
    const answered = (): void => {
      question.isAnswered = true;
    };
    // A fault is that of the sync that uses the answer.
    const ended = answer.then(answered, answered);
    const { namespace = '' } = creator.object.metadata;
    const question: Question = { namespace, text, askedAtMs: clock.nowMs(), answer, ended, isAnswered: false };
    return question;
  }

  /** Waits for an answer as long as a sync may. */
  async function wait({ ended }: Question): Promise<void> {
    const isLong = waiters < WAITERS_MAX;
    if (isLong) waiters += 1;
    try {
      await Promise.race([ended, pause(isLong ? WAIT_MS : SHORT_WAIT_MS)]);
    } finally {
      if (isLong) waiters -= 1;
    }
  }

  function forgetOld(nowMs: number): void {
    for (const [uid, { isAnswered, askedAtMs }] of questions) {
      if (isAnswered && askedAtMs < nowMs - ANSWER_LIVES_MS) questions.delete(uid);
    }
  }

  function isFull({ metadata: { namespace = '' } }: KubeObject): boolean {
    if (questions.size >= QUESTIONS_MAX) return true;
    return [...questions.values()].filter((each) => each.namespace === namespace).length >= NAMESPACE_QUESTIONS_MAX;
  }

  /** With the time until the next attempt, which grows with the failures of the owner. */
  function counted(uid: string, answer: readonly Creation[]): readonly Creation[] {
    const refused = answer.find((each) => each.kind === 'refused');
    const count = failures.get(uid)?.count ?? 0;
    failures.delete(uid);
    if (refused === undefined) return answer;
    if (failures.size >= QUESTIONS_MAX) failures.delete(failures.keys().next().value as string);
    failures.set(uid, { count: count + 1, message: refused.message });
    const retryMs = backoffMs(RETRIES, count);
    return answer.map((each) => (each.kind === 'refused' ? { ...each, retryMs } : each));
  }

  return async (creator, of, made) => {
    const nowMs = clock.nowMs();
    const uid = creator.object.metadata.uid ?? '';
    const waiting = () =>
      ({ kind: 'waiting', retryMs: LOOK_MS, ...defined({ failure: failures.get(uid)?.message }) }) as const;
    forgetOld(nowMs);
    const text = JSON.stringify([of.resource, ...made.map(({ given }) => withoutMoment(given))]);
    let question = questions.get(uid);
    if (question?.text !== text) {
      // One question of an owner at a time, however often its template changes while a webhook hangs.
      if (question?.isAnswered === false) return waiting();
      if (question === undefined && isFull(creator.object)) return waiting();
      question = ask(creator, of, made, text);
      questions.set(uid, question);
      await wait(question);
    }
    if (!question.isAnswered || questions.get(uid) !== question) return waiting();
    questions.delete(uid);
    const answer = counted(uid, await question.answer);
    return { kind: 'decided', objects: answer.map((each, index) => createdNow(each, made[index]!.object)) };
  };
}

const CREATE = { operation: 'create', subresource: '' } as const;

function withoutMoment({ metadata, ...pod }: KubeObject): KubeObject {
  const { uid: _uid, creationTimestamp: _created, ...kept } = metadata;
  return { ...pod, metadata: kept };
}

/** @param made the same object as this sync made it */
function createdNow(admitted: Creation, { metadata: { creationTimestamp } }: KubeObject): Creation {
  if (admitted.kind !== 'made') return admitted;
  const { object } = admitted;
  return { ...admitted, object: { ...object, metadata: { ...object.metadata, ...defined({ creationTimestamp }) } } };
}

function descriptorOf(of: CountedResource): ResourceDescriptor {
  const found = resources.find(({ group, resource }) => group === of.group && resource === of.resource);
  if (found === undefined) throw new Error(`no resource ${of.resource} in the group "${of.group}" is served`);
  return found;
}

/** A POST of the object. */
function callOf(
  creator: Creator,
  descriptor: ResourceDescriptor,
  { metadata: { namespace = '' } }: KubeObject,
  nowMs: number,
): AdmittedCall {
  const { group, version, resource } = descriptor;
  const path = `${group === '' ? '/api' : `/apis/${group}`}/${version}/namespaces/${namespace}/${resource}`;
  const query = new URLSearchParams();
  return {
    descriptor,
    target: { group, version, resource, subresource: '', namespace, name: '' },
    user: serviceAccountInfo('kube-system', CREATOR_ACCOUNTS[creator.kind]),
    nowMs,
    request: { method: 'POST', path, query, headers: {}, body: new Uint8Array(), sourceIp: '' },
    dryRun: false,
    operation: 'CREATE',
  };
}

/**
 * Calls the admission webhooks of the cluster for one write. Mutating ones in the order of their names, each with the
 * object as the one before left it. Validating ones at the same time.
 *
 * Sources: k8s.io/apiserver pkg/admission/plugin/webhook/{generic,mutating,validating}.
 *
 * Bounds: timeoutSeconds per call, and REQUEST_MS_MAX from the arrival of a request for all of its calls, those of
 * further attempts included. callSlots limits the calls at once to each webhook.
 *
 * Concurrency: a webhook sees the object that the write read. A write that loses to another one is admitted again, and
 * its webhooks are called again with the newer object. They have no side effects (validate-webhooks.ts).
 */

import type { AdmissionWebhooks, AdmittedWrite } from '../../shared/admission/admitted-write.ts';
import { matchesSelectors, readsNamespace } from '../../shared/admission/match.rule.ts';
import { MutationFault, withIdentityOf } from '../../shared/admission/mutation.rule.ts';
import type { ReadDependencies } from '../../shared/api/call.ts';
import type { KubeMutatingWebhookConfiguration, KubeObject, MutatingWebhook } from '../../shared/kinds/types.ts';
import { isStatusError } from '../../shared/kubernetes/http.ts';
import { parseJson } from '../../shared/kubernetes/json.ts';
import { oncePerMinute } from '../../shared/kubernetes/log-throttle.ts';
import { applyJsonPatch } from '../../shared/kubernetes/patch/json-patch.ts';
import * as status from '../../shared/kubernetes/status.ts';
import { type CallSlots, callSlots } from './call-slots.ts';
import { readReview, reviewOf, type WebhookAnswer } from './review.rule.ts';
import { type ServedForm, servedForm } from './served-form.ts';
import { CallFault, type WebhookClient } from './webhook-client.ts';
import { webhookServer } from './webhook-server.ts';

/** All calls of one request. requestTimeoutUpperBound of k8s.io/apiserver. Milliseconds. */
const REQUEST_MS_MAX = 34_000;
const OUT_OF_TIME = 'request did not complete within requested timeout';

export interface AdmissionWebhookParts extends Pick<ReadDependencies, 'storageOf' | 'clock' | 'random' | 'log'> {
  readonly client: WebhookClient;
}

/** A webhook that is for a write, in the version in which it receives it. */
interface Invocation {
  readonly webhook: MutatingWebhook;
  /** `<configuration>/<webhook>` with the kind of the configuration: names the slots. */
  readonly key: string;
  readonly form: ServedForm;
  readonly mayPatch: boolean;
}

export function admissionWebhooks(parts: AdmissionWebhookParts): AdmissionWebhooks {
  const slots = new Map<string, CallSlots>();
  const logged = oncePerMinute();
  const slotsOf = (key: string): CallSlots => {
    const known = slots.get(key) ?? callSlots();
    slots.set(key, known);
    return known;
  };

  /** @throws CallFault, StatusError */
  async function ask(invocation: Invocation, write: AdmittedWrite, object: KubeObject | undefined) {
    const { webhook, key, form, mayPatch } = invocation;
    const { call, request, value } = write;
    if (call.dryRun && !DRY_RUN_SIDE_EFFECTS.includes(webhook.sideEffects)) {
      throw status.badRequest(`admission webhook ${status.quote(webhook.name)} does not support dry run`);
    }
    const { timeoutMs, seconds } = timeOf(webhook, call.nowMs + REQUEST_MS_MAX - parts.clock.nowMs());
    const signal = AbortSignal.timeout(timeoutMs);
    const release = await acquired(slotsOf(key), call.user.username, signal);
    try {
      const uid = parts.random.uuid();
      const server = await webhookServer(webhook.clientConfig, `?timeout=${seconds}s`, parts);
      const asked = { uid, ...value, kind: form.kind, resource: form.resource };
      const objects = { object: formed(form, object), oldObject: formed(form, request.oldObject) };
      const text = await parts.client.post(server, reviewOf({ ...asked, ...objects }), signal);
      const parsed = parseJson(text);
      if (parsed.kind === 'malformed') throw new CallFault(`the answer is no JSON: ${parsed.message}`);
      return readReview(parsed.value, { webhook: webhook.name, uid, mayPatch });
    } finally {
      release();
      if (slotsOf(key).isIdle()) slots.delete(key);
    }
  }

  /** undefined: the webhook failed, and its failurePolicy lets the write pass. @throws StatusError */
  async function answerOf(invocation: Invocation, write: AdmittedWrite, object: KubeObject | undefined) {
    const { webhook } = invocation;
    let answer: WebhookAnswer;
    try {
      answer = await ask(invocation, write, object);
    } catch (error) {
      if (!(error instanceof CallFault)) throw error;
      answer = { kind: 'invalid', message: `failed to call webhook: ${error.message}` };
    }
    if (answer.kind === 'invalid') {
      failed(webhook, write, answer.message);
      return undefined;
    }
    for (const text of answer.warnings) write.warn(text);
    for (const [key, text] of Object.entries(answer.auditAnnotations)) {
      write.record({ webhook: webhook.name, key: `${webhook.name}/${key}`, value: text.slice(0, AUDIT_VALUE_MAX) });
    }
    if (answer.refusal !== undefined) throw answer.refusal;
    return answer;
  }

  /** @throws StatusError unless failurePolicy is Ignore and the request has time left */
  function failed(webhook: MutatingWebhook, { call }: AdmittedWrite, why: string): void {
    const { name, failurePolicy } = webhook;
    const nowMs = parts.clock.nowMs();
    // Logged as a failed request.
    if (failurePolicy !== 'Ignore') throw status.internalError(`failed calling webhook ${status.quote(name)}: ${why}`);
    logged(name, nowMs, (repeated) => {
      const { resource } = call.descriptor;
      parts.log.warn('an admission webhook failed: the write passes', {
        webhook: name,
        resource,
        cause: why,
        repeated,
      });
    });
    if (nowMs - call.nowMs >= REQUEST_MS_MAX) throw status.gatewayTimeout(OUT_OF_TIME);
  }

  return {
    mutators: (configurations, write) =>
      webhooksOf('mutating', configurations).map(({ webhook, key }) => ({
        reinvocationPolicy: webhook.reinvocationPolicy,
        async run(object) {
          const form = await formFor(webhook, write, object);
          if (form === undefined) return undefined;
          const invocation = { webhook, key, form, mayPatch: true };
          const answer = await answerOf(invocation, write, object);
          if (answer?.patch === undefined) return object;
          const patch = decodedPatch(answer.patch);
          if (patch === undefined) {
            failed(webhook, write, 'received undecodable patch in webhook response');
            return object;
          }
          return patch.length === 0 ? object : patched(invocation, write, object, patch);
        },
      })),

    async validate(configurations, write) {
      const { object } = write.request;
      const invocations: Invocation[] = [];
      for (const { webhook, key } of webhooksOf('validating', configurations)) {
        const form = await formFor(webhook, write, object);
        if (form !== undefined) invocations.push({ webhook, key, form, mayPatch: false });
      }
      const outcomes = await Promise.allSettled(invocations.map((each) => answerOf(each, write, object)));
      for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    },
  };
}

/** As of a policy. Characters. */
const AUDIT_VALUE_MAX = 10 * 1_024;
const DRY_RUN_SIDE_EFFECTS: readonly (string | undefined)[] = ['None', 'NoneOnDryRun'];

const webhooksOf = (kind: string, configurations: readonly KubeMutatingWebhookConfiguration[]) =>
  configurations.flatMap(({ metadata, webhooks = [] }) =>
    webhooks.map((webhook) => ({ webhook, key: `${kind}/${metadata.name}/${webhook.name}` })),
  );

/** undefined: the webhook is not for this write. @throws StatusError 403 when that cannot be decided */
async function formFor(
  webhook: MutatingWebhook,
  write: AdmittedWrite,
  object: KubeObject | undefined,
): Promise<ServedForm | undefined> {
  const request = { ...write.request, object };
  const form = servedForm(webhook, write.call, request);
  if (form === undefined) return undefined;
  const { namespaceSelector = {}, objectSelector = {}, matchPolicy = '' } = webhook;
  const match = { namespaceSelector, objectSelector, matchPolicy };
  const labels = readsNamespace(match) ? await write.namespaceLabels() : undefined;
  if (!matchesSelectors(match, request, labels)) return undefined;
  const held = await write.holds(webhook, object);
  if (typeof held === 'boolean') return held ? form : undefined;
  if (webhook.failurePolicy === 'Ignore') return undefined;
  throw status.forbidden(write.call.descriptor, request.name, held);
}

const formed = (form: ServedForm, object: KubeObject | undefined): KubeObject | null =>
  object === undefined ? null : form.toForm(object);

/** @throws StatusError 504 when no time is left */
function timeOf({ timeoutSeconds = 10 }: MutatingWebhook, leftMs: number) {
  if (leftMs <= 0) throw status.gatewayTimeout(OUT_OF_TIME);
  const timeoutMs = Math.min(timeoutSeconds * 1_000, leftMs);
  return { timeoutMs, seconds: Math.ceil(timeoutMs / 1_000) };
}

/** @throws CallFault */
async function acquired(slots: CallSlots, user: string, signal: AbortSignal) {
  const acquiring = slots.acquire(user, signal);
  if (acquiring === undefined) throw new CallFault('too many requests wait for it');
  try {
    return await acquiring;
  } catch (error) {
    throw new CallFault('context deadline exceeded while other requests waited for it', { cause: error });
  }
}

/** undefined: it is no base64 of a list. */
function decodedPatch(text: string): readonly unknown[] | undefined {
  const parsed = parseJson(Buffer.from(text, 'base64').toString('utf8'));
  return parsed.kind === 'parsed' && Array.isArray(parsed.value) ? parsed.value : undefined;
}

/** @throws StatusError 500 */
function patched(
  { webhook, form }: Invocation,
  { keepsChanges }: AdmittedWrite,
  object: KubeObject | undefined,
  patch: readonly unknown[],
): KubeObject {
  const of = `admission webhook ${status.quote(webhook.name)}`;
  if (object === undefined || !keepsChanges) {
    throw status.internalError(`${of} attempted to modify the object, which is not supported for this operation`);
  }
  const result = applyJsonPatch(form.toForm(object) as never, patch);
  if (result.kind !== 'patched') throw status.internalError(`${of} returned an invalid patch: ${result.message}`);
  try {
    return withIdentityOf(object, form.fromForm(result.object as unknown as KubeObject));
  } catch (error) {
    if (!(error instanceof MutationFault) && !isStatusError(error)) throw error;
    throw status.internalError(`${of} returned an invalid patch: ${error.message}`, { cause: error });
  }
}

/**
 * Registers the Node, with retries until it succeeds or is stopped (pkg/kubelet/kubelet_node_status.go).
 *
 * Several loops request it: the status loop before its first pass, the lease loop after the Node was deleted.
 * Concurrent requests share one run.
 */
import { backoffMs } from '../../shared/backoff.ts';
import type { KubeNode } from '../../shared/kinds/types.ts';
import type { Log } from '../../shared/observability/log.ts';
import type { AgentConfig } from '../config.ts';
import type { KubeAnswer, KubeApi, KubeRequest } from '../ports/kube-api.ts';
import type { AgentTime, Fraction } from '../ports/time.ts';
import { REGISTRATION_WAITS, retryAfterWaitMs } from '../rules/backoff.ts';
import { answeredWith, describeAnswer, nodeIn } from '../rules/kube-answer.ts';
import { nodePath } from '../rules/lease.ts';
import { registrationAnswer, registrationPatch } from '../rules/registration-answers.ts';

export interface RegistrationDependencies {
  readonly api: KubeApi;
  readonly time: AgentTime;
  readonly fraction: Fraction;
  readonly log: Log;
  /** Builds the current Node with its status, once per attempt. A rejection is a failed attempt. */
  readonly buildNode: () => Promise<KubeNode>;
  /** Stops the attempts. */
  readonly stop: AbortSignal;
  /** A request without an answer in this time has failed. Milliseconds. */
  readonly timeoutMs: number;
  /** See reconcileNode. Default: false. */
  readonly zeroExtendedResources?: boolean;
}

export interface Registration {
  /** Registers the Node once per process. False if stopped before it succeeded. */
  ensure(): Promise<boolean>;
  /** Registers a deleted Node again. False if stopped, or if `registerNode` is false. */
  again(): Promise<boolean>;
  /** Called each time the Node was registered. */
  onRegistered(listener: (node: KubeNode) => void): void;
}

export type RegistrationAttempt =
  | { readonly kind: 'registered'; readonly node: KubeNode }
  | { readonly kind: 'failed'; readonly why: string; readonly answer: KubeAnswer };

export function createRegistration(
  config: Pick<AgentConfig, 'nodeName' | 'registerNode'>,
  dependencies: RegistrationDependencies,
): Registration {
  const { time, fraction, log, stop } = dependencies;
  const listeners: ((node: KubeNode) => void)[] = [];
  let isRegistered = false;
  let running: Promise<boolean> | undefined;

  async function run(): Promise<boolean> {
    let retryAfterMs = 0;
    for (let number = 0; !stop.aborted; number += 1) {
      await time.sleep(Math.max(backoffMs(REGISTRATION_WAITS, number), retryAfterMs), stop);
      if (stop.aborted) return false;
      retryAfterMs = 0;
      let node: KubeNode;
      try {
        node = await dependencies.buildNode();
      } catch (error) {
        log.warn('the Node could not be built', { node: config.nodeName, error });
        continue;
      }
      const attempt = await registerOnce(node, dependencies);
      if (attempt.kind === 'registered') {
        isRegistered = true;
        log.info('registered', { node: config.nodeName, uid: attempt.node.metadata.uid });
        for (const listener of listeners) listener(attempt.node);
        return true;
      }
      log.warn('the Node could not be registered', { node: config.nodeName, why: attempt.why, attempt: number + 1 });
      if (attempt.answer.kind === 'answered') retryAfterMs = retryAfterWaitMs(attempt.answer, fraction());
    }
    return false;
  }

  function shared(): Promise<boolean> {
    running ??= run().finally(() => {
      running = undefined;
    });
    return running;
  }

  return {
    ensure: async () => !config.registerNode || isRegistered || shared(),
    again: async () => config.registerNode && shared(),
    onRegistered: (listener) => {
      listeners.push(listener);
    },
  };
}

/** One attempt: creates the Node, or reads and corrects the existing one. Three requests at most. */
export async function registerOnce(
  initial: KubeNode,
  {
    api,
    stop,
    timeoutMs,
    zeroExtendedResources = false,
  }: Pick<RegistrationDependencies, 'api' | 'stop' | 'timeoutMs' | 'zeroExtendedResources'>,
): Promise<RegistrationAttempt> {
  const send = (request: KubeRequest) => api.send({ ...request, timeoutMs, signal: stop });
  const failed = (what: string, answer: KubeAnswer): RegistrationAttempt => ({
    kind: 'failed',
    why: `${what}: ${describeAnswer(answer)}`,
    answer,
  });
  const created = await send({ method: 'POST', path: '/api/v1/nodes', body: initial });
  const name = initial.metadata.name ?? '';
  const creation = registrationAnswer(created, name);
  if (creation.kind === 'registered') return creation;
  if (creation.kind === 'failed') return { kind: 'failed', why: `create: ${creation.why}`, answer: created };
  const path = nodePath(name);
  const found = await send({ method: 'GET', path });
  const existing = answeredWith(found, 200) ? nodeIn(found, name) : undefined;
  if (existing === undefined) return failed('read', found);
  const patch = registrationPatch(existing, initial, { zeroExtendedResources });
  if (patch === undefined) return { kind: 'registered', node: existing };
  const patched = await send({
    method: 'PATCH',
    path: `${path}/status`,
    body: patch,
    contentType: 'application/strategic-merge-patch+json',
  });
  const correction = registrationAnswer(patched, name);
  if (correction.kind === 'failed') return { kind: 'failed', why: `correct: ${correction.why}`, answer: patched };
  return correction.kind === 'registered' ? correction : failed('correct', patched);
}

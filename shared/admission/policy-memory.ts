/**
 * The admission policies of the cluster in memory, with the bindings that apply them, and its webhooks.
 *
 * Freshness: they are read again when the change log of a kind has a newer commit. That is checked before a write when
 * the last check is older than CHECK_MS, so a policy holds in every process at most CHECK_MS after its write, as an
 * informer of upstream is late by some time. A process sees its own writes at once: the next check is consistent. A
 * check that fails fails the request: no write passes unchecked.
 *
 * Cost: a policy without a binding does nothing, so bindings are checked first. A check of a cluster without bindings
 * is one read unit per CHECK_MS, and only while writes arrive. Heartbeats do not come here.
 */

import type { ListPage, ListQuery } from '../api/resource-storage.ts';
import { defined } from '../defined.ts';
import type {
  KubeMutatingAdmissionPolicy,
  KubeMutatingAdmissionPolicyBinding,
  KubeMutatingWebhookConfiguration,
  KubeObject,
  KubeValidatingAdmissionPolicy,
  KubeValidatingAdmissionPolicyBinding,
} from '../kinds/types.ts';
import type { ChangeLog } from '../store/change-log.ts';

/** Age of the last check until which a write needs no other. Milliseconds. */
export const CHECK_MS = 5_000;
/** Objects of each kind. The creation of another one is refused: a policy must not be ignored. */
export const POLICIES_MAX = 500;
const PAGE_ITEMS = 100;

const BINDINGS = ['validatingadmissionpolicybindings', 'mutatingadmissionpolicybindings'] as const;
const POLICIES = ['validatingadmissionpolicies', 'mutatingadmissionpolicies'] as const;
const WEBHOOKS = ['validatingwebhookconfigurations', 'mutatingwebhookconfigurations'] as const;
export type AdmissionKind = (typeof BINDINGS)[number] | (typeof POLICIES)[number] | (typeof WEBHOOKS)[number];

/** A policy with its bindings, both ordered by name. */
export interface BoundPolicy<P extends KubeObject, B extends KubeObject> {
  readonly policy: P;
  readonly bindings: readonly B[];
}

export type ValidatingHook = BoundPolicy<KubeValidatingAdmissionPolicy, KubeValidatingAdmissionPolicyBinding>;
export type MutatingHook = BoundPolicy<KubeMutatingAdmissionPolicy, KubeMutatingAdmissionPolicyBinding>;

export interface AdmissionHooks {
  readonly validating: readonly ValidatingHook[];
  readonly mutating: readonly MutatingHook[];
}

/** Both ordered by name. Those of validating webhooks have no reinvocationPolicy. */
export interface WebhookConfigurations {
  readonly validating: readonly KubeMutatingWebhookConfiguration[];
  readonly mutating: readonly KubeMutatingWebhookConfiguration[];
}

export interface AdmissionPolicies {
  /** Policies that have bindings. */
  hooks(nowMs: number): Promise<AdmissionHooks>;
  /** Not read before the first call: a process that calls no webhooks pays nothing for them. */
  webhooks(nowMs: number): Promise<WebhookConfigurations>;
  /** This process wrote one of these objects. */
  changed(): void;
}

interface MemorySource {
  readonly changes: Pick<ChangeLog, 'newestCommits'>;
  readonly list: (kind: AdmissionKind, query: ListQuery) => Promise<ListPage>;
}

const NONE: AdmissionHooks = { validating: [], mutating: [] };

export function admissionPolicies(source: MemorySource): AdmissionPolicies {
  const memory = objectMemory(source);
  const hooks = checked<AdmissionHooks>(async (consistent) => {
    await memory.refresh(BINDINGS, consistent);
    if (BINDINGS.every((kind) => memory.objectsOf(kind).length === 0)) return NONE;
    await memory.refresh(POLICIES, consistent);
    return {
      validating: bound(
        memory.objectsOf('validatingadmissionpolicies'),
        memory.objectsOf('validatingadmissionpolicybindings'),
      ),
      mutating: bound(
        memory.objectsOf('mutatingadmissionpolicies'),
        memory.objectsOf('mutatingadmissionpolicybindings'),
      ),
    };
  });
  const webhooks = checked<WebhookConfigurations>(async (consistent) => {
    await memory.refresh(WEBHOOKS, consistent);
    const sorted = (kind: AdmissionKind) => memory.objectsOf<KubeMutatingWebhookConfiguration>(kind).toSorted(byName);
    return { validating: sorted(WEBHOOKS[0]), mutating: sorted(WEBHOOKS[1]) };
  });
  return {
    hooks: hooks.current,
    webhooks: webhooks.current,
    changed() {
      hooks.changed();
      webhooks.changed();
    },
  };
}

/** Objects of each kind, read again when there is a newer commit. */
function objectMemory({ changes, list }: MemorySource) {
  const known = new Map<AdmissionKind, { readonly version: number; readonly objects: readonly KubeObject[] }>();
  return {
    async refresh(kinds: readonly AdmissionKind[], consistent: boolean): Promise<void> {
      const versions = await changes.newestCommits(kinds, { consistent });
      for (const [i, kind] of kinds.entries()) {
        // An eventually consistent read may return an older version than one before it.
        const version = Math.max(versions[i] ?? 0, known.get(kind)?.version ?? 0);
        if (version === (known.get(kind)?.version ?? 0)) continue;
        known.set(kind, { version, objects: await listAll(list, kind) });
      }
    },
    objectsOf: <T extends KubeObject>(kind: AdmissionKind): readonly T[] =>
      (known.get(kind)?.objects ?? []) as readonly T[],
  };
}

/**
 * The result of a check, which is made again after CHECK_MS or a write of this process. One check at a time, or the
 * result of an earlier one could replace that of a later one. Calls that arrive meanwhile share it.
 */
function checked<T>(check: (consistent: boolean) => Promise<T>) {
  let result: T;
  let checkedAtMs = Number.NEGATIVE_INFINITY;
  /** Writes of this process, and how many of them the last check has seen. */
  let writes = 0;
  let writesChecked = 0;
  /** The check under way, and the writes that it sees. */
  let running: Promise<T> | undefined;
  let writesRead = 0;
  async function run(nowMs: number, seen: number, former?: Promise<T>): Promise<T> {
    if (former !== undefined) await former.catch(() => {});
    try {
      result = await check(seen !== writesChecked);
      writesChecked = seen;
      // A write during the check needs another one.
      if (seen === writes) checkedAtMs = nowMs;
      return result;
    } finally {
      if (seen === writesRead) running = undefined;
    }
  }
  return {
    current(nowMs: number): Promise<T> {
      // A check time in the future means that the clock was set back.
      if (Math.abs(nowMs - checkedAtMs) < CHECK_MS) return Promise.resolve(result);
      if (running === undefined || writesRead !== writes) {
        writesRead = writes;
        running = run(nowMs, writes, running);
      }
      return running;
    },
    changed() {
      writes += 1;
      checkedAtMs = Number.NEGATIVE_INFINITY;
    },
  };
}

const byName = (one: KubeObject, other: KubeObject): number =>
  (one.metadata.name ?? '') < (other.metadata.name ?? '') ? -1 : 1;

function bound<P extends KubeObject, B extends KubeObject & { spec?: { policyName?: string } }>(
  policies: readonly P[],
  bindings: readonly B[],
): readonly BoundPolicy<P, B>[] {
  return [...policies].sort(byName).flatMap((policy) => {
    const own = bindings.filter(({ spec }) => spec?.policyName === policy.metadata.name).sort(byName);
    return own.length === 0 ? [] : [{ policy, bindings: own }];
  });
}

async function listAll(
  list: (kind: AdmissionKind, query: ListQuery) => Promise<ListPage>,
  kind: AdmissionKind,
): Promise<readonly KubeObject[]> {
  const objects: KubeObject[] = [];
  let after: string | undefined;
  // A few more than the limit: creations that run at once may pass it.
  while (objects.length < 2 * POLICIES_MAX) {
    const page = await list(kind, { namespace: '', limit: PAGE_ITEMS, ...defined({ continueAfter: after }) });
    objects.push(...page.items);
    if (page.next === undefined) break;
    after = page.next;
  }
  return objects;
}

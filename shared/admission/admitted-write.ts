/** One write as policies and webhooks see it, and what a process that calls webhooks does with it. */

import type { Call } from '../api/call.ts';
import type { KubeObject, MatchCondition } from '../kinds/types.ts';
import type { AdmittedOperation, MatchedRequest } from './match.rule.ts';
import type { WebhookConfigurations } from './policy-memory.ts';

export interface AdmittedCall extends Pick<Call, 'descriptor' | 'target' | 'user' | 'nowMs' | 'request'> {
  readonly dryRun: boolean;
  /** Absent: by the objects. */
  readonly operation?: AdmittedOperation;
  /** Kind of the body, if it differs from that of the resource, such as Scale. */
  readonly kind?: { readonly group: string; readonly version: string; readonly kind: string };
}

/** One write, as webhooks need it. `object` is the current one: a mutation before may have changed it. */
export interface AdmittedWrite {
  readonly call: AdmittedCall;
  readonly request: MatchedRequest;
  /** An AdmissionRequest without uid and objects, in the version of the request. */
  readonly value: object;
  /** Whether a change of the object can be stored: no for deletions, connections, and bodies that are no objects. */
  readonly keepsChanges: boolean;
  /** Labels of the namespace of the object. undefined: it has none. */
  namespaceLabels(): Promise<Readonly<Record<string, string>> | undefined>;
  /** Whether all conditions hold. A text: they cannot be evaluated. */
  holds(of: { readonly matchConditions?: MatchCondition[] }, object: KubeObject | undefined): Promise<boolean | string>;
  /** Sent with the answer. */
  warn(text: string): void;
  /** A line of the log. */
  record(fields: object): void;
}

/** What changes an object before it is stored. */
export interface Mutator {
  readonly reinvocationPolicy: string | undefined;
  /** undefined: it is not for this write. @throws StatusError */
  run(object: KubeObject | undefined): Promise<KubeObject | undefined>;
}

/** Calls servers. */
export interface AdmissionWebhooks {
  /** In the order of their calls. */
  mutators(configurations: WebhookConfigurations['mutating'], write: AdmittedWrite): readonly Mutator[];
  /** @throws StatusError */
  validate(configurations: WebhookConfigurations['validating'], write: AdmittedWrite): Promise<void>;
}

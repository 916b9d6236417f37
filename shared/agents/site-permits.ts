/**
 * What a machine asks of the hub of its site, every ten seconds (decision 0068):
 *
 *   POST /apis/nodekeeper.dev/v1alpha1/sitepermits   PermitRequest → PermitAnswer
 *
 * The permits count from before the request was sent.
 */
import type { KubePod } from '../kinds/types.ts';

export const SITE_PERMITS = { group: 'nodekeeper.dev', version: 'v1alpha1', resource: 'sitepermits' } as const;

export interface PermitRequest {
  /** uids of pods that this machine does not run and never will. */
  readonly released?: readonly string[];
  /** uids of withdrawn copies that this machine does not run any more. */
  readonly stopped?: readonly string[];
}

export interface PermitAnswer {
  /** User name of the hub. */
  readonly hub: string;
  /** uids of pods that the machine may run. */
  readonly permitted: readonly string[];
  /** Those of them that the cluster does not know yet. */
  readonly copies: readonly KubePod[];
  /** uids of copies that the machine must stop for good. */
  readonly withdrawn: readonly string[];
  /** Of those of the request: the end of these may be reported to the cluster. */
  readonly released: readonly string[];
}

/** Where a cluster runs. */
import type { KubeAccess } from '../../test/support/kubeconfig.ts';

/** One version of Nodekeeper, built. */
export interface Build {
  /** For the table. */
  readonly name: string;
  /** The command `nodekeeper`. */
  readonly command: readonly [program: string, ...words: string[]];
  /** Directory of its synthesised template with its functions. */
  assembly(): Promise<string>;
}

export interface Home {
  readonly name: string;
  /** As the administrator, and as simulated machines. */
  readonly access: KubeAccess;
  readonly fleetAccess: KubeAccess;
  /** Puts another build in the place of the one that runs. Settles when the cluster answers as that build. */
  change(build: Build): Promise<void>;
  stop(): Promise<void>;
}

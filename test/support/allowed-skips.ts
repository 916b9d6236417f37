/** Tests that may be skipped in CI. Any other skip fails the run, because a skipped test is easily overlooked. */
export interface AllowedSkip {
  /** From the project's root. */
  readonly file: string;
  /** How the reason of the skip begins. */
  readonly reason: string;
  /** Why CI cannot run it. */
  readonly because: string;
}

export const allowedSkips: readonly AllowedSkip[] = [
  {
    file: 'test/contract/pod-runtime.test.ts',
    reason: 'this node runs no pods',
    because: 'the runtime none refuses every pod, so this part of the contract does not apply',
  },
  {
    file: 'test/contract/cgroup-tree.test.ts',
    reason: 'no writable cgroup v2',
    because: 'control groups of the kernel need root and cgroup v2; the same contract holds for groups in memory',
  },
  {
    file: 'agent/adapters/runtime-exec/runtime-exec-limits.test.ts',
    reason: 'no writable cgroup v2',
    because:
      'control groups of the kernel need root, cgroup v2 and its controllers; what is written is tested in memory',
  },
  {
    file: 'test/contract/pod-runtime.test.ts',
    reason: 'podman',
    because: 'the machines of CI have no container engine; its calls are tested with a program that records them',
  },
  {
    file: 'test/agent/services.test.ts',
    reason: 'no network namespaces',
    because:
      'machines that reach each other need root, network namespaces and nftables; the rules are tested in memory',
  },
  {
    file: 'test/agent/network-policies.test.ts',
    reason: 'no network namespaces',
    because: 'pods that reach each other need root, network namespaces and nftables; the rules are tested in memory',
  },
  {
    file: 'test/agent/nft-updates.test.ts',
    reason: 'no network namespaces',
    because: 'the kernel needs root and network namespaces; the transactions are tested in memory',
  },
  {
    file: 'test/e2e/three-tier.test.ts',
    reason: 'no network namespaces',
    because: 'machines with addresses of their own need root, network namespaces and nftables',
  },
  {
    file: 'agent/packaging/install.test.ts',
    reason: 'no mount namespaces',
    because: 'an installation that is removed from the running machine needs root, and directories of its own',
  },
  {
    file: 'server/store/full-disk.test.ts',
    reason: 'no mount namespaces',
    because: 'a small file system needs a mount namespace',
  },
  {
    file: 'server/store/read-only-disk.test.ts',
    reason: 'no loop devices',
    because: 'a file system that becomes read-only needs a loop device and ext4',
  },
  {
    file: 'agent/adapters/volumes/project-quota.test.ts',
    reason: 'no project quotas',
    because: 'a kernel without quotas of ext4 limits no directory; the same story passes over a disk in memory',
  },
  {
    file: 'test/systemd/agent.test.ts',
    reason: 'systemd cannot be booted',
    because: 'a boot needs root, overlay mounts, network namespaces and a mounted cgroup v2',
  },
  {
    file: 'test/systemd/serve.test.ts',
    reason: 'systemd cannot be booted',
    because: 'a boot needs root, overlay mounts, network namespaces and a mounted cgroup v2',
  },
  {
    file: 'test/e2e/iam-proof.test.ts',
    reason: 'no evaluator of others',
    because: '.ci/run installs it, unless its licence (AGPL-3.0) is refused: our own evaluator decides the same calls',
  },
  {
    file: 'test/release/terraform-apply.test.ts',
    reason: 'no mirror of Terraform is named',
    because: 'npm and Debian have no provider of AWS; by hand with TERRAFORM_PLUGINS=DIRECTORY (docs/releases.md)',
  },
];

export interface SkippedTest {
  /** From the project's root. */
  readonly file: string;
  /** With the names of the suites it is in. */
  readonly name: string;
  /** The reason of `context.skip(reason)`, if that is how it was skipped. */
  readonly note?: string | undefined;
}

/** The reason: that of `context.skip`, else `(skipped: …)` in a name; '' when neither says one. */
export const reasonOf = ({ name, note }: SkippedTest): string =>
  note ?? /\(skipped: ([\s\S]*?)\)(?= > |$)/.exec(name)?.[1] ?? '';

/** Skipped tests that no entry allows. */
export const unlistedSkips = (skipped: readonly SkippedTest[], allowed: readonly AllowedSkip[]): SkippedTest[] =>
  skipped.filter((test) => {
    const reason = reasonOf(test);
    return !allowed.some((each) => each.file === test.file && reason !== '' && reason.startsWith(each.reason));
  });

/**
 * Command line and environment of a container's process, from its spec and inputs. Source: upstream
 * pkg/kubelet/container/helpers.go (ExpandContainerCommandAndArgs).
 */
import type { Container, KubePod } from '../../../shared/kinds/types.ts';
import type { ContainerInputs, ContainerMount } from '../../ports/container-inputs.ts';
import { expand } from '../../rules/env.ts';
import { unsupportedProbe } from '../../rules/probe.ts';
import { type ProcessSecurity, processSecurity } from '../../rules/security-context.ts';

/** The default PATH, for shell scripts. */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/** The default of terminationMessagePath. */
export const TERMINATION_PATH = '/dev/termination-log';

export interface CommandLine {
  readonly kind: 'command';
  readonly file: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Working directory; undefined: that of the agent. */
  readonly directory: string | undefined;
  readonly userId: number | undefined;
  readonly groupId: number | undefined;
}

/** A command line with what `isolation.ts` has to do before the program starts. */
export interface ContainerCommand extends CommandLine {
  readonly mounts: readonly ContainerMount[];
  readonly security: ProcessSecurity;
  /** Whether the termination message is at a path of its own choice. */
  readonly hasOwnTerminationLog: boolean;
}

/** The spec requires something that processes on this machine cannot have. */
export interface Unsupported {
  readonly kind: 'unsupported';
  readonly message: string;
}

const unsupported = (message: string): Unsupported => ({ kind: 'unsupported', message });

/** @param agentUserId the user of a container that names none */
export function commandLine(
  pod: KubePod,
  container: Container,
  { variables, mounts }: Extract<ContainerInputs, { kind: 'ready' }>,
  agentUserId: number,
): ContainerCommand | Unsupported {
  const security = processSecurity(pod, container, agentUserId);
  if (security.kind === 'refused') return unsupported(security.message);
  const probe = unsupportedProbe(container);
  if (probe !== undefined) return unsupported(probe);
  const { command = [] } = container;
  const [file, ...args] = [...command, ...(container.args ?? [])].map((word) => expand(word, variables));
  if (file === undefined || command.length === 0) {
    return unsupported('no command: without images there is no default command');
  }
  return {
    kind: 'command',
    file,
    args,
    env: { PATH: PATH_DEFAULT, HOSTNAME: pod.metadata.name ?? '', ...variables },
    directory: container.workingDir || undefined,
    userId: security.userId,
    groupId: security.groupId,
    // A directory of the machine at its own path needs no mount.
    mounts: mounts.filter(({ source, target, readOnly }) => readOnly || source !== target),
    security,
    hasOwnTerminationLog: (container.terminationMessagePath || TERMINATION_PATH) !== TERMINATION_PATH,
  };
}

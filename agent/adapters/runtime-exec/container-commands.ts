/** Command lines of the processes of a pod: the first one of a container, and those of hooks and probes. */
import type { ContainerInputSource, ContainerMount } from '../../ports/container-inputs.ts';
import { type CommandLine, type ContainerCommand, commandLine, TERMINATION_PATH } from './command-line.ts';
import { attached, type Isolated, isolated, type MountMode, needsMounts } from './isolation.ts';
import type { PodProcesses } from './pod-processes.ts';
import type { ContainerRecord } from './pod-record.ts';

/** What the pods of a runtime share. */
export interface CommandContext {
  readonly inputs: () => ContainerInputSource;
  readonly mountMode: () => MountMode;
}

export type StartLine =
  | { readonly kind: 'start'; readonly isolated: Isolated }
  /** @property isFinal whether another attempt would have the same result */
  | { readonly kind: 'notReady'; readonly reason: string; readonly message: string; readonly isFinal: boolean };

const CONFIG_ERROR = 'CreateContainerConfigError';
/** Variable with the path of the termination log. Without mounts it is not the one of the spec. */
const TERMINATION_LOG_VARIABLE = 'NODEKEEPER_TERMINATION_LOG';

export class ContainerCommands {
  readonly #processes: PodProcesses;
  readonly #context: CommandContext;

  constructor(processes: PodProcesses, context: CommandContext) {
    this.#processes = processes;
    this.#context = context;
  }

  /** @param terminationLog file that the container sees at its terminationMessagePath, if it has mounts */
  startLine(container: ContainerRecord, terminationLog: string): StartLine {
    const command = this.#command(container);
    if (command.kind === 'notReady') return command;
    try {
      const mode = this.#context.mountMode();
      const hasMounts = mode === 'mounts' && needsMounts(command);
      const terminationMount = this.#terminationMount(container, terminationLog);
      const mounts = hasMounts ? [...command.mounts, terminationMount] : command.mounts;
      const seenPath = hasMounts ? terminationMount.target : terminationLog;
      const env = { ...command.env, [TERMINATION_LOG_VARIABLE]: seenPath };
      return { kind: 'start', isolated: isolated({ ...command, mounts, env }, mode) };
    } catch (cause) {
      return { kind: 'notReady', reason: CONFIG_ERROR, message: (cause as Error).message, isFinal: false };
    }
  }

  /** A further process of a running container, with the same environment, user and mounts. @throws Error */
  furtherLine(container: ContainerRecord, words: readonly string[]): CommandLine {
    const command = this.#command(container);
    if (command.kind === 'notReady') throw new Error(command.message);
    const [file = '', ...args] = words;
    const pid = container.hasMounts === true ? container.process?.pid : undefined;
    return attached({ ...command, file, args }, pid);
  }

  #terminationMount(container: ContainerRecord, source: string): ContainerMount {
    const target = this.#processes.specOf(container).terminationMessagePath || TERMINATION_PATH;
    return { source, target, isFile: true, readOnly: false };
  }

  #command(container: ContainerRecord): ContainerCommand | Extract<StartLine, { kind: 'notReady' }> {
    const { pod } = this.#processes;
    const spec = this.#processes.specOf(container);
    const inputs = this.#context.inputs().inputsOf(pod, spec);
    if (inputs.kind === 'notReady') return { ...inputs, isFinal: false };
    const line = commandLine(pod, spec, inputs, process.getuid?.() ?? 0);
    if (line.kind === 'command') return line;
    return { kind: 'notReady', reason: CONFIG_ERROR, message: line.message, isFinal: true };
  }
}

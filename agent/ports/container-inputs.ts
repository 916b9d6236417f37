/** What a container starts with besides its spec. */
import type { Container, KubePod } from '../../shared/kinds/types.ts';

export interface ContainerMount {
  /** A directory or file of the machine. */
  readonly source: string;
  /** Where the container sees it. */
  readonly target: string;
  readonly isFile: boolean;
  readonly readOnly: boolean;
  /** Device and inode of a source in a volume, as `<device>:<inode>`. Processes of the pod may replace its path. */
  readonly identity?: string;
  /** Whether the source is a part of a volume (`subPath`): processes of the pod may replace it at any time. */
  readonly isPart?: boolean;
  /** The machine has a file of its own there. Where mounts are links, the container sees that one. */
  readonly replacesMachine?: boolean;
}

export type ContainerInputs =
  | {
      readonly kind: 'ready';
      readonly variables: Readonly<Record<string, string>>;
      readonly mounts: readonly ContainerMount[];
    }
  /** The container cannot be created now. Reason and message are those of its waiting state. */
  | { readonly kind: 'notReady'; readonly reason: string; readonly message: string };

export interface ContainerInputSource {
  /** From the newest reads; sends no request. @param podIp address of the pod, if it is not that of the machine */
  inputsOf(pod: KubePod, container: Container, podIp?: string): ContainerInputs;
  /** Reads again what was missing. Never rejects. */
  readMissing(pod: KubePod): Promise<void>;
}

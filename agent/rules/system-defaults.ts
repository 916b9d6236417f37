/** Defaults and limits of settings that depend on the operating system of the machine. */
import type { AgentConfig, EvictionThresholds, RuntimeName } from '../config.ts';

export interface SystemDefaults {
  readonly rootDirectory: string;
  readonly configFile: string;
  readonly isAbsolutePath: (path: string) => boolean;
  readonly runtimes: readonly RuntimeName[];
  /** Settings that this system does not have. */
  readonly absentSettings: readonly string[];
  /** The default of a kubelet. Source: pkg/kubelet/apis/config/v1beta1/defaults_linux.go and defaults_others.go. */
  readonly evictionHard: EvictionThresholds;
  /** Feature gates that this system knows, with what a configuration is where one is off. */
  readonly gates: Readonly<Record<string, (config: AgentConfig) => AgentConfig>>;
}

const MEBIBYTE = 1_024 * 1_024;
const unchanged = (config: AgentConfig): AgentConfig => config;

export const LINUX_DEFAULTS: SystemDefaults = {
  rootDirectory: '/var/lib/nodekeeper',
  configFile: '/etc/nodekeeper/agent.yaml',
  isAbsolutePath: (path) => path.startsWith('/'),
  runtimes: ['none', 'exec', 'podman'],
  absentSettings: [],
  evictionHard: {
    'memory.available': { kind: 'quantity', value: 100 * MEBIBYTE },
    'nodefs.available': { kind: 'percent', percent: 10 },
    'nodefs.inodesFree': { kind: 'percent', percent: 5 },
    'imagefs.available': { kind: 'percent', percent: 15 },
    'imagefs.inodesFree': { kind: 'percent', percent: 5 },
  },
  gates: { NodeSwap: unchanged },
};

export const WINDOWS_DEFAULTS: SystemDefaults = {
  rootDirectory: 'C:\\ProgramData\\nodekeeper',
  configFile: 'C:\\ProgramData\\nodekeeper\\agent.yaml',
  isAbsolutePath: (path) => /^[A-Za-z]:[\\/]/.test(path),
  runtimes: ['none', 'exec'],
  absentSettings: ['relay', 'services', 'plannedSilenceOnSleepSeconds', 'cgroupRoot'],
  evictionHard: {
    'memory.available': { kind: 'quantity', value: 500 * MEBIBYTE },
    'nodefs.available': { kind: 'percent', percent: 10 },
    'imagefs.available': { kind: 'percent', percent: 15 },
  },
  gates: {
    WindowsGracefulNodeShutdown: (config) => ({
      ...config,
      shutdownGracePeriodMs: 0,
      shutdownGracePeriodCriticalPodsMs: 0,
      shutdownGracePeriodByPodPriority: [],
    }),
  },
};

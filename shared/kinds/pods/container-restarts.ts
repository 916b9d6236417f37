/**
 * When a terminated container starts again. Source: kubernetes.io, "Pod Lifecycle", Individual container restart policy
 * and rules; upstream pkg/api/v1/pod/util.go (ContainerShouldRestart).
 */
import type { Container, PodSpec } from '../types.ts';

export const RESTART_ALL_ACTION = 'RestartAllContainers';

type Restarts = Pick<Container, 'restartPolicy' | 'restartPolicyRules'>;

/** Whether it may start again, after some exit code. Source: the same (IsContainerRestartable). */
export const isRestartable = ({ restartPolicy, restartPolicyRules = [] }: Restarts, podPolicy = 'Always'): boolean =>
  (restartPolicy !== undefined && restartPolicyRules.length > 0) || (restartPolicy ?? podPolicy) !== 'Never';

/** The first of its rules that matches. Rules without a policy of the container do not count. */
const ruleAfter = (exitCode: number, { restartPolicy, restartPolicyRules = [] }: Restarts) =>
  restartPolicy === undefined
    ? undefined
    : restartPolicyRules.find(
        ({ exitCodes }) =>
          exitCodes !== undefined && (exitCodes.values ?? []).includes(exitCode) === (exitCodes.operator === 'In'),
      );

/** A rule decides, then its own policy, then that of its pod. Each action of a rule restarts the container. */
export function restartsAfter(exitCode: number, container: Restarts, podPolicy = 'Always'): boolean {
  if (ruleAfter(exitCode, container) !== undefined) return true;
  const policy = container.restartPolicy ?? podPolicy;
  return policy === 'OnFailure' ? exitCode !== 0 : policy !== 'Never';
}

/** Whether this exit restarts all containers of the pod. */
export const restartsAllAfter = (exitCode: number, container: Restarts): boolean =>
  ruleAfter(exitCode, container)?.action === RESTART_ALL_ACTION;

/** Whether an exit may restart every container of the pod. Source: the same (AllContainersCouldRestart). */
export const mayRestartAll = ({ initContainers = [], containers = [] }: PodSpec): boolean =>
  [...initContainers, ...containers].some(({ restartPolicyRules = [] }) =>
    restartPolicyRules.some(({ action }) => action === RESTART_ALL_ACTION),
  );

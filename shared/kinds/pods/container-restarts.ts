/**
 * When a terminated container starts again. Source: kubernetes.io, "Pod Lifecycle", Individual container restart policy
 * and rules; upstream pkg/api/v1/pod/util.go (ContainerShouldRestart).
 */
import type { Container } from '../types.ts';

type Restarts = Pick<Container, 'restartPolicy' | 'restartPolicyRules'>;

/** Whether it may start again, after some exit code. Source: the same (IsContainerRestartable). */
export const isRestartable = ({ restartPolicy, restartPolicyRules = [] }: Restarts, podPolicy = 'Always'): boolean =>
  (restartPolicy !== undefined && restartPolicyRules.length > 0) || (restartPolicy ?? podPolicy) !== 'Never';

/**
 * The first of its rules that matches decides, then its own policy, then that of its pod. Rules without a policy of
 * the container do not count.
 */
export function restartsAfter(
  exitCode: number,
  { restartPolicy, restartPolicyRules = [] }: Restarts,
  podPolicy = 'Always',
): boolean {
  const isMatch = ({ exitCodes }: (typeof restartPolicyRules)[number]): boolean =>
    exitCodes !== undefined && (exitCodes.values ?? []).includes(exitCode) === (exitCodes.operator === 'In');
  // The only action that is served is Restart.
  if (restartPolicy !== undefined && restartPolicyRules.some(isMatch)) return true;
  const policy = restartPolicy ?? podPolicy;
  return policy === 'OnFailure' ? exitCode !== 0 : policy !== 'Never';
}

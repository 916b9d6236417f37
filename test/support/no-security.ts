import type { ProcessSecurity } from '../../agent/rules/security-context.ts';

/** Of a container without a security context. */
export const NO_SECURITY: ProcessSecurity = {
  kind: 'security',
  userId: undefined,
  groupId: undefined,
  supplementalGroups: [],
  readOnlyRoot: false,
  noNewPrivileges: false,
  capabilities: undefined,
};

import { storedResource } from '../stored-resource.ts';

export const DAEMON_SETS = storedResource({
  group: 'apps',
  resource: 'daemonsets',
  kind: 'DaemonSet',
  scope: 'namespaced',
});

/** The states of the cluster's alarms. Source: CloudWatch API reference, "DescribeAlarms". */
import { CloudWatchClient, DescribeAlarmsCommand } from '@aws-sdk/client-cloudwatch';
import { type AwsAccount, callAws, clientOptions } from './aws.ts';
import { type Finding, fail, ok, warn } from './check.ts';

interface AlarmState {
  /** Without the prefix of the cluster. */
  readonly name: string;
  readonly state: string;
  readonly notifies: boolean;
}

const PAGE_ITEMS = 100;
const PAGES_MAX = 10;
/** The composite alarm that notifies on-call. */
const PAGE_ALARM = 'page';

export async function checkAlarms(account: AwsAccount, clusterId: string): Promise<Finding> {
  const alarms = await alarmsOf(account, clusterId);
  const runbook = (name: string): string => `docs/operations/alarms/${name}.md`;
  const inState = (state: string) => alarms.filter((alarm) => alarm.state === state).map(({ name }) => name);
  if (alarms.length === 0) {
    return fail(`no alarm of cluster ${clusterId} in ${account.region}`, 'check --cluster-id and --region');
  }
  const alarming = inState('ALARM');
  if (alarming.length > 0) {
    // The composite alarm follows from the others.
    const causes = alarming.filter((name) => name !== PAGE_ALARM);
    return fail(
      `ALARM: ${alarming.join(', ')}`,
      `read ${(causes.length > 0 ? causes : alarming).map(runbook).join(', ')}`,
    );
  }
  const unknown = inState('INSUFFICIENT_DATA');
  if (unknown.length > 0) {
    return warn(
      `INSUFFICIENT_DATA: ${unknown.join(', ')}; ${inState('OK').length} alarms OK`,
      `wait ten minutes after a deployment, then read ${unknown.map(runbook).join(', ')}`,
    );
  }
  if (alarms.some(({ name, notifies }) => name === PAGE_ALARM && !notifies)) {
    return warn(
      `${alarms.length} alarms OK, but alarm page notifies no one`,
      'deploy with alarmEmail or alarmTopicArn',
    );
  }
  return ok(`${alarms.length} alarms OK`);
}

/** @throws CommandError when CloudWatch does not answer */
function alarmsOf(account: AwsAccount, clusterId: string): Promise<AlarmState[]> {
  const client = new CloudWatchClient(clientOptions(account, 'CLOUDWATCH'));
  return callAws(client, 'cloudwatch:DescribeAlarms', async () => {
    const found: AlarmState[] = [];
    let token: string | undefined;
    for (let page = 0; page < PAGES_MAX; page += 1) {
      const answer = await client.send(
        new DescribeAlarmsCommand({
          AlarmNamePrefix: `${clusterId}-`,
          AlarmTypes: ['MetricAlarm', 'CompositeAlarm'],
          MaxRecords: PAGE_ITEMS,
          NextToken: token,
        }),
      );
      for (const alarm of [...(answer.MetricAlarms ?? []), ...(answer.CompositeAlarms ?? [])]) {
        const name = ownName(clusterId, alarm.AlarmName, alarm.AlarmDescription);
        const notifies = alarm.ActionsEnabled !== false && (alarm.AlarmActions ?? []).length > 0;
        if (name !== undefined) found.push({ name, state: alarm.StateValue ?? '', notifies });
      }
      token = answer.NextToken;
      if (token === undefined) break;
    }
    return found;
  });
}

/**
 * The name without the prefix. undefined: the alarm of another cluster, such as edge-2-page for cluster edge. The
 * description names the runbook, and the runbook has the name of the alarm.
 */
function ownName(clusterId: string, alarmName = '', description = ''): string | undefined {
  const name = alarmName.slice(clusterId.length + 1);
  return description.endsWith(`/${name}.md`) ? name : undefined;
}

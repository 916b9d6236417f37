/** Figures in the documentation that follow from the template and the price list. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Template } from 'aws-cdk-lib/assertions';
import { describe, expect, it } from 'vitest';
import { type BillSettings, billReport, billRows, POLLERS_MIN } from '../../bench/cost/bill.ts';
import { billLines, costTable, tableLines } from '../../bench/cost/cost-table.ts';
import { parseCostOptions } from '../../bench/cost/options.ts';
import { readMeasurement } from '../../bench/cost/recorded.ts';
import { standingOf } from '../../bench/cost/standing.ts';
import { Capacity } from '../../cdk/lib/capacity.ts';
import { requestLimits } from '../../cdk/lib/cluster-options.ts';
import type { NodekeeperClusterProps } from '../../cdk/lib/cluster-props.ts';
import { reservedConcurrencyOf } from '../../cdk/lib/concurrency.ts';
import { repositoryRoot } from '../../cdk/lib/function-names.ts';
import { routeLimits } from '../../cdk/lib/http-api.ts';
import { costItems } from '../../console/model/running-cost.ts';
import { functionList } from '../../functions/function-list.ts';
import { HELD_WATCH_DOLLARS_PER_HOUR } from '../../shared/cost/held-watch.ts';
import { dollarsOf, PRICE_LIST, SECONDS_PER_DAY } from '../../shared/cost/prices.ts';
import { defaultPolicy } from '../../shared/fleet/policy.ts';
import type { FunctionManifest } from '../../shared/functions/function-manifest.ts';
import { expectDocumented, markdownTable } from '../support/documented.ts';
import { synthesise } from './synthesised.ts';

const docs = (path: string): string => readFileSync(join(repositoryRoot, 'docs', path), 'utf8').replaceAll(/\s+/g, ' ');
const { httpApiRequest, lambdaRequest } = PRICE_LIST.prices;

let template: Template | undefined;
const standard = (): Template => {
  template ??= synthesise();
  return template;
};

describe('the documented cost', () => {
  it.each(['architecture.md', 'console.md'])('of a held watch in %s is that of the function and its price', (page) => {
    expect(docs(page)).toContain(`$${HELD_WATCH_DOLLARS_PER_HOUR.toFixed(4)} per hour`);
  });

  it('of anonymous load follows from the limits of the routes and of the function watch', () => {
    const perRequest = httpApiRequest.dollars + lambdaRequest.dollars;
    for (const nodesMax of [1_000, 10_000]) {
      const { heartbeats, others } = routeLimits(requestLimits({ nodesMax }, defaultPolicy));
      const perSecond = 3 * heartbeats.rateLimit + others.rateLimit;
      const dollars = Math.round(perSecond * SECONDS_PER_DAY * perRequest);
      expect(docs('cost.md')).toContain(`| ${perSecond.toLocaleString('en-US')} | $${dollars} |`);
    }
    const { watch = 0 } = reservedConcurrencyOf({}, defaultPolicy);
    // Lambda accepts ten requests per second for each reserved execution.
    const requests = 10 * watch * SECONDS_PER_DAY * lambdaRequest.dollars;
    const dollars = Math.round(requests + 24 * watch * HELD_WATCH_DOLLARS_PER_HOUR);
    expect(docs('cost.md')).toContain(`| ${10 * watch} | $${dollars} |`);
  });
});

describe('the documented bill', () => {
  const recorded = JSON.parse(readFileSync(join(repositoryRoot, 'bench/cost/measurement.json'), 'utf8')) as unknown;
  const outcome = readMeasurement(recorded);
  if (outcome.kind !== 'measurement') throw new Error(outcome.faults.join());
  const { measurement } = outcome;
  const prices = dollarsOf(PRICE_LIST);
  const options = parseCostOptions([]);
  if (options === 'help') throw new Error('no options');
  const settings: BillSettings = { ...options, nodes: 0, lambdaTime: 'estimated', idlePollers: POLLERS_MIN };
  const cents = (dollars: number): string => `$${dollars.toFixed(2)}`;
  const idle = (more: Partial<BillSettings> = {}) =>
    billReport(measurement, { ...settings, zones: 0, ...more }, prices);

  it('counts the fixed resources of the template', () => {
    const { memoryMegabytes: _, ...standing } = standingOf(standard().toJSON() as never);
    expect(measurement.standing).toMatchObject(standing);
  });

  it('has the tables that npm run cost prints', () => {
    const rows = billRows(measurement, [10, 100, 1_000, 10_000, 100_000], settings, prices);
    for (const line of billLines(rows)) expect(docs('cost.md')).toContain(line);
    const intervals = [10, 60].map((each) => ({ name: `${each} s`, beatSeconds: each }));
    const table = costTable(measurement, { sizes: [100, 1_000, 10_000], intervals }, settings, prices);
    for (const line of tableLines(table, ({ dollarsPerNode }) => dollarsPerNode))
      expect(docs('cost.md')).toContain(line);
  });

  it('in README is the same bill', () => {
    const MACHINES = 50;
    const VCPUS = 4;
    const month = (nodes: number, more: Partial<BillSettings> = {}): number =>
      billReport(measurement, { ...settings, nodes, zones: nodes === 0 ? 0 : settings.zones, ...more }, prices).bill
        .dollars;
    const additional = (more: Partial<BillSettings> = {}): string =>
      cents((month(1_000, more) - month(100, more)) / 900);
    const beat60 = additional({ beatSeconds: 60, door: 'url' });
    // List prices of EKS in docs/cost.md.
    const eksDollars = 73;
    const hybridDollars = Math.round(eksDollars + MACHINES * VCPUS * 14.6);
    const rows = [
      ['', 'per month'],
      ['idle cluster, alarms and dashboard included', cents(idle().idle.dollars)],
      [`${MACHINES} machines in three zones, heartbeat every 10 s`, cents(month(MACHINES))],
      ['each further machine; with provisioned tables', `${additional()}; ${additional({ billing: 'provisioned' })}`],
      ['each further machine through the heartbeat URL; also every 60 s', `${additional({ door: 'url' })}; ${beat60}`],
      ['in comparison: an EKS control plane alone', `$${eksDollars}`],
      [
        `in comparison: EKS with ${MACHINES} Hybrid Nodes of ${VCPUS} vCPU`,
        `$${hybridDollars.toLocaleString('en-US')}`,
      ],
    ];
    expectDocumented('README.md', 'cost', markdownTable(rows));
  });

  const fleets = [0, 6, 50, 1_000, 2_000, 5_000, 10_000, 100_000].flatMap((nodes) =>
    [0, 3].flatMap((zones) => [10, 60].map((beatSeconds) => ({ nodes, zones, beatSeconds }))),
  );
  it.each(fleets)('on the page of the console is the same bill: %o', ({ nodes, zones, beatSeconds }) => {
    const beats = [{ profile: 'default', nodes, intervalSeconds: beatSeconds }];
    const shown = costItems(beats, zones).reduce((sum, { dollarsPerMonth }) => sum + dollarsPerMonth, 0);
    const { dollars } = billReport(measurement, { ...settings, nodes, zones, beatSeconds }, prices).bill;
    expect(Math.abs(shown - dollars)).toBeLessThan(0.01 + dollars / 1_000);
  });

  it('of an idle cluster is the same everywhere', () => {
    const { idle: bill, idleAfterAllowances, idleWithAllPollers } = idle();
    const provisioned = idle({ billing: 'provisioned' });
    const total = cents(bill.dollars);
    const standing = (...items: string[]): number =>
      bill.lines.reduce(
        (sum, { item, dollars }) => sum + (items.some((each) => item.startsWith(each)) ? dollars : 0),
        0,
      );
    const alarms = standing('CloudWatch alarms', 'CloudWatch composite');
    const page = docs('cost.md');
    expect(page).toContain(`**${total} per month** at list price`);
    expect(page).toContain(`missed by ${cents(bill.dollars - 12)}); ${cents(idle({ door: 'url' }).idle.dollars)} with`);
    expect(page).toContain(`Alarms and dashboard are ${cents(alarms + standing('CloudWatch dashboard'))} of it`);
    expect(page).toContain(`uses them | ${cents(idleAfterAllowances)} |`);
    expect(page).toContain(`three others | ${cents(bill.dollars - standing('CloudWatch dashboard'))} |`);
    expect(page).toContain(`1 ms per invocation | ${cents(idle({ lambdaTime: 'floor' }).idle.dollars)} |`);
    expect(page).toContain(`this machine's clock | ${cents(idle({ lambdaTime: 'clock' }).idle.dollars)} |`);
    expect(page).toContain(`five pollers at the queue | ${cents(idleWithAllPollers.dollars)} |`);
    expect(page).toContain(
      `minimum capacity | ${cents(provisioned.idle.dollars)}; ${cents(provisioned.idleAfterAllowances)} after`,
    );
    const inZones = billReport(measurement, { ...settings, abandonedWatchesPerDay: 0 }, prices).bill.dollars;
    expect(page).toContain(`metrics and logs | ${cents(inZones - bill.dollars)} more |`);
    const { alarmMetrics } = measurement.standing;
    expect(page).toContain(`pays for ${alarmMetrics - 10} of ${alarmMetrics} alarm metrics`);
    expect(page).toContain(`| alarms: ${alarmMetrics} metrics and the composite one | ${alarms.toFixed(2)} |`);
    expect(page).toContain(`| metrics | ${standing('CloudWatch metrics').toFixed(2)} |`);
    expect(docs('quality.md')).toContain(
      `${total} with scheduler and workloads; ${cents(idleWithAllPollers.dollars)} with five pollers; ` +
        `${cents(idleAfterAllowances)} after free allowances`,
    );
    const alarmsPage = docs('operations/alarms/README.md');
    expect(alarmsPage).toContain(`The alarms evaluate ${alarmMetrics} metrics at $0.10`);
    expect(alarmsPage).toContain(`**${cents(alarms)} per month**`);
    expect(alarmsPage).toContain(`${cents(alarms - 1)} in an account without other alarms`);
  });
});

it('the documented ways out of a VPC name each function that sends messages, calls or events', () => {
  const [row = ''] = /\| SQS, Lambda, EventBridge \|.*?\| interface/.exec(docs('network.md')) ?? [];
  const uses = functionList.filter(
    ({ environment = [], publishesEvents }: FunctionManifest) =>
      ['PART_QUEUE_URL', 'TICK_QUEUE_URL', 'WAKE_FUNCTIONS'].some((each) => environment.includes(each as never)) ||
      publishesEvents === true,
  );
  const named = [...row.matchAll(/`([a-z-]+)`/g)].map(([, name = '']) => name);
  const known = named.filter((name) => functionList.some((each) => each.name === name));
  expect(known.toSorted()).toEqual(uses.map(({ name }) => name).toSorted());
});

it('the documented size of the stack is that of the template', { timeout: 120_000 }, () => {
  const everything: NodekeeperClusterProps = { capacity: Capacity.provisioned(1_000), alarmEmail: 'a@example.com' };
  const templates = {
    standard: standard(),
    longPoll: synthesise({ policy: { watchMode: 'longPoll' } }),
    provisioned: synthesise({ capacity: Capacity.provisioned(1_000) }),
    everything: synthesise({ ...everything, policy: { heartbeatUrl: 'on' } }),
  };
  const count = (name: keyof typeof templates): number =>
    Object.keys(templates[name].toJSON()['Resources'] as object).length;
  expect(docs('operations/quotas.md')).toContain(
    `the stack has ${count('standard')} of 500 resources: ${count('longPoll')} with \`watchMode: longPoll\`, ` +
      `${count('provisioned')} with provisioned capacity, ${count('everything')} with alarms by mail and ` +
      '`heartbeatUrl: on` as well.',
  );
  const kilobytes = Math.max(
    ...Object.values(templates).map((each) => JSON.stringify(each.toJSON(), null, 1).length / 1_000),
  );
  expect(docs('operations/quotas.md')).toContain(`at most ${Math.ceil(kilobytes / 20) * 20} KB of 1 MB`);
});

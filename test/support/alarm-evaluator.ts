/**
 * CloudWatch's part in an alarm: figures by period and statistic, metric math as far as our alarms use it, M of N
 * periods, and what is made of missing data. Alarms are read off the synthesised template, so what is tried is what is
 * deployed.
 *
 * Missing data: more periods than N are looked at; with N real points among them the missing ones do not matter, else
 * the treatment fills up. How many more is not documented beyond its examples, which have two.
 * Source: CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data", with its tables as tests.
 * FILL of a metric without any point is a row of the filler.
 */
import type { Template } from 'aws-cdk-lib/assertions';
import { ofType, shortArn } from '../cdk/synthesised.ts';

export type AlarmState = 'OK' | 'ALARM' | 'INSUFFICIENT_DATA';
type Missing = 'missing' | 'ignore' | 'breaching' | 'notBreaching';

/** Periods looked at beyond N. */
const MORE_PERIODS = 2;

export interface MetricId {
  readonly namespace: string;
  readonly name: string;
  readonly dimensions: Readonly<Record<string, string>>;
}

const keyOf = ({ namespace, name, dimensions }: MetricId): string =>
  JSON.stringify([namespace, name, Object.entries(dimensions).sort(([a], [b]) => (a < b ? -1 : 1))]);

/** Figures as CloudWatch would hold them. */
export class MetricFigures {
  readonly #points = new Map<string, { readonly atMs: number; readonly value: number }[]>();

  add(id: MetricId, atMs: number, ...values: readonly number[]): void {
    const points = this.#points.get(keyOf(id)) ?? [];
    for (const value of values) points.push({ atMs, value });
    this.#points.set(keyOf(id), points);
  }

  /** A log line in the embedded metric format, written at `atMs`. @throws for any other line */
  addLine(line: string, atMs: number): void {
    const record = JSON.parse(line) as Record<string, unknown> & {
      readonly _aws: {
        readonly CloudWatchMetrics: readonly {
          readonly Namespace: string;
          readonly Dimensions: readonly (readonly string[])[];
          readonly Metrics: readonly { readonly Name: string }[];
        }[];
      };
    };
    for (const { Namespace: namespace, Dimensions: sets, Metrics: metrics } of record._aws.CloudWatchMetrics) {
      for (const names of sets) {
        const dimensions = Object.fromEntries(names.map((name) => [name, String(record[name])]));
        for (const { Name: name } of metrics) {
          this.add({ namespace, name, dimensions }, atMs, ...[record[name] as number | number[]].flat());
        }
      }
    }
  }

  /** Names of the metrics in a namespace. */
  names(namespace: string): string[] {
    return [...new Set(this.ids(namespace).map(({ name }) => name))].sort();
  }

  /** Every series of a namespace. */
  ids(namespace: string): MetricId[] {
    return [...this.#points.keys()].flatMap((key) => {
      const [of, name, dimensions] = JSON.parse(key) as [string, string, [string, string][]];
      return of === namespace ? [{ namespace, name, dimensions: Object.fromEntries(dimensions) }] : [];
    });
  }

  /** The statistic of the period that begins at `fromMs`; undefined without a figure in it. */
  statistic(id: MetricId, statistic: string, fromMs: number, periodMs: number): number | undefined {
    const values = (this.#points.get(keyOf(id)) ?? [])
      .filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + periodMs)
      .map(({ value }) => value)
      .sort((a, b) => a - b);
    if (values.length === 0) return undefined;
    const sum = values.reduce((total, value) => total + value, 0);
    switch (statistic) {
      case 'Sum':
        return sum;
      case 'Average':
        return sum / values.length;
      case 'Maximum':
        return values.at(-1);
      case 'Minimum':
        return values[0];
      case 'SampleCount':
        return values.length;
    }
    const percent = /^p(\d+(?:\.\d+)?)$/.exec(statistic)?.[1];
    if (percent === undefined) throw new Error(`no statistic ${statistic}`);
    return values[Math.max(0, Math.ceil((values.length * Number(percent)) / 100) - 1)];
  }
}

interface MetricStat {
  readonly Metric: {
    readonly Namespace: string;
    readonly MetricName: string;
    readonly Dimensions?: readonly { readonly Name: string; readonly Value: unknown }[];
  };
  readonly Period: number;
  readonly Stat: string;
}

interface AlarmProperties {
  readonly AlarmName: string;
  readonly AlarmDescription: string;
  readonly ComparisonOperator: string;
  readonly Threshold: number;
  readonly EvaluationPeriods: number;
  readonly DatapointsToAlarm?: number;
  readonly TreatMissingData?: Missing;
  readonly Namespace?: string;
  readonly MetricName?: string;
  readonly Dimensions?: MetricStat['Metric']['Dimensions'];
  readonly Period?: number;
  readonly Statistic?: string;
  readonly ExtendedStatistic?: string;
  readonly Metrics?: readonly {
    readonly Id: string;
    readonly Expression?: string;
    readonly MetricStat?: MetricStat;
    readonly ReturnData?: boolean;
  }[];
}

interface Source {
  readonly id: MetricId;
  readonly statistic: string;
}

/** An alarm of the template, and the state it is in. */
export class EvaluatedAlarm {
  readonly name: string;
  readonly description: string;
  readonly logicalId: string;
  readonly periodMs: number;
  /** Metrics it is billed for. */
  readonly metricCount: number;
  state: AlarmState = 'INSUFFICIENT_DATA';
  readonly #properties: AlarmProperties;
  readonly #sources: ReadonlyMap<string, Source>;
  readonly #expression: string;

  constructor(logicalId: string, properties: AlarmProperties) {
    this.logicalId = logicalId;
    this.#properties = properties;
    this.name = properties.AlarmName;
    this.description = properties.AlarmDescription;
    const stats = statsOf(properties);
    this.#expression =
      properties.Metrics?.find(({ Expression }) => Expression !== undefined)?.Expression ?? stats[0]!.id;
    this.#sources = new Map(stats.map(({ id, stat }) => [id, sourceOf(stat)]));
    const periods = new Set(stats.map(({ stat }) => stat.Period));
    if (periods.size !== 1) throw new Error(`${this.name}: periods differ`);
    this.periodMs = [...periods][0]! * 1_000;
    this.metricCount = stats.length;
  }

  get metrics(): readonly MetricId[] {
    return [...this.#sources.values()].map(({ id }) => id);
  }

  /** The state that CloudWatch computes when a period has ended: `atMs` is the end of the last whole one. */
  evaluate(figures: MetricFigures, atMs: number): AlarmState {
    const { EvaluationPeriods: wanted, DatapointsToAlarm: toAlarm = wanted } = this.#properties;
    const end = Math.floor(atMs / this.periodMs);
    const points: (boolean | undefined)[] = [];
    for (let period = end - wanted - MORE_PERIODS; period < end; period += 1) {
      const value = this.#valueAt(figures, period * this.periodMs);
      points.push(value === undefined ? undefined : this.#breaches(value));
    }
    this.state = verdict(points, { wanted, toAlarm, missing: this.#missing(), before: this.state });
    return this.state;
  }

  /** Alarms on DynamoDB's own metrics ignore missing data, whatever their configuration. */
  #missing(): Missing {
    const { Namespace: namespace, TreatMissingData: missing = 'missing' } = this.#properties;
    return namespace === 'AWS/DynamoDB' ? 'ignore' : missing;
  }

  #valueAt(figures: MetricFigures, fromMs: number): number | undefined {
    const figureOf = (name: string): number | undefined => {
      const source = this.#sources.get(name);
      if (source === undefined) throw new Error(`${this.name}: no metric ${name}`);
      return figures.statistic(source.id, source.statistic, fromMs, this.periodMs);
    };
    const value = new Expression(this.#expression, figureOf).value();
    if (typeof value === 'object') throw new Error(`${this.name}: more than one series`);
    return value;
  }

  #breaches(value: number): boolean {
    const { Threshold: threshold, ComparisonOperator: operator } = this.#properties;
    switch (operator) {
      case 'GreaterThanThreshold':
        return value > threshold;
      case 'GreaterThanOrEqualToThreshold':
        return value >= threshold;
      case 'LessThanThreshold':
        return value < threshold;
      case 'LessThanOrEqualToThreshold':
        return value <= threshold;
    }
    throw new Error(`${this.name}: ${operator}`);
  }
}

function statsOf(properties: AlarmProperties): { readonly id: string; readonly stat: MetricStat }[] {
  const { Metrics: metrics, Namespace, MetricName, Dimensions, Period, Statistic, ExtendedStatistic } = properties;
  if (metrics !== undefined) {
    return metrics.flatMap(({ Id: id, MetricStat: stat }) => (stat === undefined ? [] : [{ id, stat }]));
  }
  const metric = {
    Namespace: Namespace!,
    MetricName: MetricName!,
    ...(Dimensions === undefined ? {} : { Dimensions }),
  };
  return [{ id: 'm', stat: { Metric: metric, Period: Period!, Stat: (Statistic ?? ExtendedStatistic)! } }];
}

const sourceOf = ({ Metric: metric, Stat: statistic }: MetricStat): Source => ({
  id: {
    namespace: metric.Namespace,
    name: metric.MetricName,
    dimensions: Object.fromEntries((metric.Dimensions ?? []).map(({ Name, Value }) => [Name, shortArn(Value)])),
  },
  statistic,
});

/** `points`, oldest first: breaching, not breaching, or missing. */
export function verdict(
  points: readonly (boolean | undefined)[],
  at: { readonly wanted: number; readonly toAlarm: number; readonly missing: Missing; readonly before: AlarmState },
): AlarmState {
  const { wanted, toAlarm, missing, before } = at;
  const real = points.filter((point) => point !== undefined).slice(-wanted);
  const breaching = real.filter(Boolean).length;
  const filled = wanted - real.length;
  if (breaching + (missing === 'breaching' ? filled : 0) >= toAlarm) return 'ALARM';
  if (filled === 0 || missing === 'breaching' || missing === 'notBreaching') return 'OK';
  if (real.includes(false)) return 'OK';
  if (missing === 'ignore') return before;
  return real.length === 0 ? 'INSUFFICIENT_DATA' : 'ALARM';
}

type Value = number | undefined | readonly (number | undefined)[];

/** Metric math at one period: numbers, names, + - * /, lists, and FILL, SUM, MAX, MIN. */
class Expression {
  readonly #tokens: readonly string[];
  readonly #figureOf: (name: string) => number | undefined;
  #next = 0;

  constructor(text: string, figureOf: (name: string) => number | undefined) {
    this.#tokens = text.match(/[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|[-+*/()[\],]/g) ?? [];
    this.#figureOf = figureOf;
  }

  value(): Value {
    const value = this.#sum();
    if (this.#next < this.#tokens.length) throw new Error(`metric math: ${this.#tokens[this.#next]} is not understood`);
    return value;
  }

  #sum(): Value {
    let left = this.#product();
    for (let sign = this.#take('+', '-'); sign !== undefined; sign = this.#take('+', '-')) {
      left = pointwise(left, this.#product(), (a, b) => (sign === '+' ? a + b : a - b));
    }
    return left;
  }

  #product(): Value {
    let left = this.#factor();
    for (let sign = this.#take('*', '/'); sign !== undefined; sign = this.#take('*', '/')) {
      // What is divided by zero has no point.
      left = pointwise(left, this.#factor(), (a, b) => (sign === '*' ? a * b : b === 0 ? undefined : a / b));
    }
    return left;
  }

  #factor(): Value {
    if (this.#take('(') !== undefined) return this.#until(')')[0];
    if (this.#take('[') !== undefined) return this.#until(']').flat() as (number | undefined)[];
    const token = this.#tokens[this.#next];
    this.#next += 1;
    if (token === undefined) throw new Error('metric math: it ends too early');
    if (/^\d/.test(token)) return Number(token);
    return this.#take('(') === undefined ? this.#figureOf(token) : apply(token, this.#until(')'));
  }

  #until(end: string): Value[] {
    const values: Value[] = [];
    do values.push(this.#sum());
    while (this.#take(',') !== undefined);
    if (this.#take(end) === undefined) throw new Error(`metric math: ${end} is missing`);
    return values;
  }

  #take(...wanted: readonly string[]): string | undefined {
    const token = this.#tokens[this.#next];
    if (token === undefined || !wanted.includes(token)) return undefined;
    this.#next += 1;
    return token;
  }
}

function pointwise(left: Value, right: Value, of: (a: number, b: number) => number | undefined): number | undefined {
  if (Array.isArray(left) || Array.isArray(right)) throw new Error('metric math: a list in arithmetic');
  return left === undefined || right === undefined ? undefined : of(left as number, right as number);
}

function apply(name: string, [first, second]: readonly Value[]): Value {
  if (name === 'FILL') return first === undefined ? second : first;
  const values = [first].flat().filter((value) => value !== undefined) as number[];
  if (values.length === 0) return undefined;
  switch (name) {
    case 'SUM':
      return values.reduce((sum, value) => sum + value, 0);
    case 'MAX':
      return Math.max(...values);
    case 'MIN':
      return Math.min(...values);
  }
  throw new Error(`metric math: no function ${name}`);
}

export class EvaluatedAlarms {
  readonly all: readonly EvaluatedAlarm[];
  readonly #composites: readonly { readonly name: string; readonly description: string; readonly rule: string }[];

  constructor(template: Template) {
    this.all = ofType(template, 'AWS::CloudWatch::Alarm').map(
      ([id, { Properties: properties }]) => new EvaluatedAlarm(id, properties as unknown as AlarmProperties),
    );
    this.#composites = ofType(template, 'AWS::CloudWatch::CompositeAlarm').map(([, { Properties: properties }]) => ({
      name: String(properties['AlarmName']),
      description: String(properties['AlarmDescription']),
      rule: shortArn(properties['AlarmRule']),
    }));
  }

  get names(): string[] {
    return [...this.all, ...this.#composites].map(({ name }) => name);
  }

  get descriptions(): ReadonlyMap<string, string> {
    return new Map([...this.all, ...this.#composites].map(({ name, description }) => [name, description]));
  }

  get compositeCount(): number {
    return this.#composites.length;
  }

  alarm(name: string): EvaluatedAlarm {
    const found = this.all.find((alarm) => alarm.name === name);
    if (found === undefined) throw new Error(`no alarm ${name}`);
    return found;
  }

  evaluate(figures: MetricFigures, atMs: number): void {
    for (const alarm of this.all) alarm.evaluate(figures, atMs);
  }

  /** Names of the alarms that a composite alarm evaluates. */
  partsOf(composite: string): string[] {
    const { rule } = this.#composites.find(({ name }) => name === composite)!;
    return rule
      .replace(/^\((.*)\)$/, '$1')
      .split(' OR ')
      .map((part) => {
        const id = /^ALARM\("<(.*)\.Arn>"\)$/.exec(part)?.[1];
        const alarm = this.all.find(({ logicalId }) => logicalId === id);
        if (alarm === undefined) throw new Error(`${composite}: ${part}`);
        return alarm.name;
      });
  }

  compositeState(name: string): AlarmState {
    return this.partsOf(name).some((part) => this.alarm(part).state === 'ALARM') ? 'ALARM' : 'OK';
  }

  alarming(): string[] {
    return this.all.filter(({ state }) => state === 'ALARM').map(({ name }) => name);
  }
}

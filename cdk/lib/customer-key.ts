import { ArnFormat, RemovalPolicy, Stack } from 'aws-cdk-lib';
import { CfnTable } from 'aws-cdk-lib/aws-dynamodb';
import { Policy, PolicyStatement, ServicePrincipal } from 'aws-cdk-lib/aws-iam';
import { Key } from 'aws-cdk-lib/aws-kms';
import { CfnLogGroup } from 'aws-cdk-lib/aws-logs';
import { CfnQueue } from 'aws-cdk-lib/aws-sqs';
import { Construct, type IConstruct } from 'constructs';

/** The key permissions that a caller of each service needs. The service uses the key on behalf of the caller. */
const ACTIONS = {
  dynamodb: [
    'kms:Decrypt',
    'kms:DescribeKey',
    'kms:Encrypt',
    'kms:GenerateDataKey',
    'kms:ReEncryptFrom',
    'kms:ReEncryptTo',
  ],
  sqs: ['kms:Decrypt', 'kms:GenerateDataKey'],
} as const;
type Service = keyof typeof ACTIONS;

export interface CustomerKeyProps {
  /** ARN of an existing key. @default - a new key, rotated yearly */
  readonly keyArn: string | undefined;
}

/**
 * A customer-managed key for everything that the cluster stores. It is retained when the stack is deleted, like the
 * audit log: the retained data would be unreadable without it.
 */
export class CustomerKey extends Construct {
  readonly keyArn: string;

  constructor(scope: Construct, id: string, props: CustomerKeyProps) {
    super(scope, id);
    this.keyArn = props.keyArn ?? this.#makeKey().keyArn;
  }

  /**
   * Encrypts every table, queue and log group below `scope`. Allows each role there to use the key, only through the
   * services that its policy names. Must be called when all of them exist.
   */
  encrypt(scope: IConstruct): void {
    const constructs = scope.node.findAll();
    for (const construct of constructs) {
      if (construct instanceof CfnTable) {
        construct.sseSpecification = { sseEnabled: true, sseType: 'KMS', kmsMasterKeyId: this.keyArn };
      } else if (construct instanceof CfnQueue) construct.kmsMasterKeyId = this.keyArn;
      else if (construct instanceof CfnLogGroup) construct.kmsKeyId = this.keyArn;
    }
    for (const policy of constructs.filter((construct) => construct instanceof Policy)) this.#allowUse(policy);
  }

  #allowUse(policy: Policy): void {
    const stack = Stack.of(this);
    const granted = JSON.stringify(stack.resolve(policy.document.toJSON()));
    for (const service of Object.keys(ACTIONS) as Service[]) {
      if (!granted.includes(`"${service}:`)) continue;
      policy.addStatements(
        new PolicyStatement({
          actions: [...ACTIONS[service]],
          resources: [this.keyArn],
          conditions: { StringEquals: { 'kms:ViaService': `${service}.${stack.region}.${stack.urlSuffix}` } },
        }),
      );
    }
  }

  #makeKey(): Key {
    const stack = Stack.of(this);
    const key = new Key(this, 'Key', {
      description: 'Nodekeeper: tables, queues and logs',
      enableKeyRotation: true,
      removalPolicy: RemovalPolicy.RETAIN,
    });
    const logs = {
      service: 'logs',
      resource: 'log-group',
      resourceName: '*',
      arnFormat: ArnFormat.COLON_RESOURCE_NAME,
    };
    key.addToResourcePolicy(
      new PolicyStatement({
        principals: [new ServicePrincipal(`logs.${stack.region}.amazonaws.com`)],
        actions: ['kms:Encrypt*', 'kms:Decrypt*', 'kms:ReEncrypt*', 'kms:GenerateDataKey*', 'kms:Describe*'],
        resources: ['*'],
        conditions: { ArnLike: { 'kms:EncryptionContext:aws:logs:arn': stack.formatArn(logs) } },
      }),
    );
    return key;
  }
}

import { RemovalPolicy, Validations } from 'aws-cdk-lib';
import { Secret } from 'aws-cdk-lib/aws-secretsmanager';
import { Construct } from 'constructs';

/**
 * The credential of node-monitor's own probe beats, made in the account and never shown: the functions that check it and
 * the one that sends it get it by reference at deployment. All it opens is one Lease that belongs to no node.
 */
export class ProbeToken extends Construct {
  /** A reference that CloudFormation resolves; the token itself is in no template. */
  readonly reference: string;

  constructor(scope: Construct, id: string) {
    super(scope, id);
    const secret = new Secret(this, 'Token', {
      description: 'Nodekeeper: credential of its own probe beats',
      generateSecretString: { excludePunctuation: true, passwordLength: 43 },
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.reference = secret.secretValue.unsafeUnwrap();
    Validations.of(secret).acknowledge({
      id: 'AwsSolutions-SMG4',
      reason:
        'It renews one Lease that belongs to no node; a new one comes with replacing the secret and a deployment.',
    });
  }
}

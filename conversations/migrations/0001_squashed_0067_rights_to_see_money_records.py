"""All tables as they are after 0067, made at once: a new database needs one step instead of 66.

A database that had one of the older steps goes on with these, as Django chooses by itself, and so
does `migrate conversations NAME`. Both ways end with the same tables and rows
(tests/faults/test_killed_writers.py).
"""

from importlib import import_module

import conversations.models.fields
import conversations.models.validators
import django.contrib.auth.models
import django.contrib.auth.validators
import django.core.validators
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models
from django.db.migrations.operations.base import Operation

# Rows that a new site begins with; the other steps with functions change rows that were there.
catalogue, native, web_search = (
    import_module(f'{__package__}.{name}') for name in ('0002_catalogue', '0005_native', '0020_web_search')
)


class CreateModels(Operation):
    """Makes many tables with one rendering of the models, where Django would render them for each.

    Therefore a table may name one that comes after it.
    """

    def __init__(self, models):
        self.models = models

    def state_forwards(self, app_label, state):
        state.__dict__.pop('apps', None)
        for model in self.models:
            model.state_forwards(app_label, state)

    def database_forwards(self, app_label, schema_editor, from_state, to_state):
        for model in self.models:
            model.database_forwards(app_label, schema_editor, from_state, to_state)

    def database_backwards(self, app_label, schema_editor, from_state, to_state):
        for model in reversed(self.models):
            model.database_backwards(app_label, schema_editor, from_state, to_state)

    def describe(self):
        return 'Create all models'


def begin_chains(apps, schema_editor):
    for kind in ('SiteChain', 'AnchorMark'):
        apps.get_model('conversations', kind)(id=1).save(force_insert=True)


class Migration(migrations.Migration):

    replaces = [('conversations', name) for name in (
        '0001_initial', '0002_catalogue', '0003_decision', '0004_pins', '0005_native', '0006_history',
        '0007_branches', '0008_paths', '0009_proposals', '0010_continued', '0012_budgets', '0013_approvals',
        '0014_tool_access', '0015_mail', '0016_mcp', '0017_files', '0018_corrections', '0019_forks',
        '0020_web_search', '0021_anchors', '0022_log_ins', '0023_page_version', '0024_repair',
        '0025_effort', '0026_view_checkpoint', '0027_effort_of_groups', '0028_in_full', '0029_mcp_identity',
        '0030_erasure_proofs', '0031_account_events', '0032_information_flow', '0033_second_factors',
        '0034_models_of_groups', '0035_email_asked', '0036_digests_key', '0037_invitations',
        '0038_reset_made', '0039_retention', '0040_renew_view_checkpoints', '0041_rights_of_roles',
        '0042_documents', '0043_sessions', '0044_impersonations', '0045_result_bill', '0046_thresholds',
        '0047_database_moves', '0048_money_records', '0049_corrected_overruns', '0050_rights_to_see_moves',
        '0051_indexes_on_time', '0052_saved_prompts', '0053_rights_to_write_prompts', '0054_closed_days',
        '0055_budget_alerts', '0056_rights_to_set_alerts', '0057_who_changed_money',
        '0058_budgets_of_models', '0059_choices_in_words', '0060_own_limits', '0061_api_tokens',
        '0062_rights_to_make_tokens', '0063_cost_centres', '0064_rights_on_cost_centres',
        '0065_booked_differences', '0066_limits_a_minute', '0067_rights_to_see_money_records',
    )]

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('sessions', '0001_initial'),
    ]

    operations = [
        CreateModels([
            migrations.CreateModel(
                name='ApiModel',
                fields=[
                    ('id', models.CharField(max_length=100, primary_key=True, serialize=False, verbose_name='model id')),
                    ('window', models.PositiveIntegerField(help_text='Context window in tokens.')),
                    ('max_output', models.PositiveIntegerField()),
                    ('thinking', models.CharField(choices=[('adaptive', 'Adaptive'), ('always', 'Always'), ('extended', 'Extended')], max_length=10)),
                    ('is_enabled', models.BooleanField(default=True)),
                    ('clears', models.BooleanField(default=False, help_text='Whether the API clears old tool results for it (context editing).', verbose_name='clears tool results')),
                    ('compacts', models.BooleanField(default=False, help_text='Whether the API compacts conversations with it when it is asked to.', verbose_name='compacts on demand')),
                    ('lifecycle', models.CharField(blank=True, max_length=12)),
                    ('retires_at', models.DateTimeField(blank=True, null=True)),
                    ('groups', models.ManyToManyField(blank=True, help_text='Only their members may use the model; none chosen: everybody may.', related_name='models', to='auth.group', verbose_name='kept for groups')),
                    ('thresholds', models.JSONField(blank=True, default=dict, help_text='Thresholds of the context policy that replace the site\'s for this model, in tokens or as shares of its window, for example {"keep_below_tokens": "60%"}.')),
                ],
                options={
                    'verbose_name': 'model',
                },
            ),
            migrations.CreateModel(
                name='Blob',
                fields=[
                    ('digest', models.CharField(max_length=80, primary_key=True, serialize=False)),
                    ('text', models.TextField()),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='Envelope',
                fields=[
                    ('digest', models.CharField(max_length=80, primary_key=True, serialize=False)),
                    ('text', models.TextField()),
                    ('headers', models.TextField(default='{}')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='User',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('password', models.CharField(max_length=128, verbose_name='password')),
                    ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                    ('is_superuser', models.BooleanField(default=False, help_text='Designates that this user has all permissions without explicitly assigning them.', verbose_name='superuser status')),
                    ('username', models.CharField(error_messages={'unique': 'A user with that username already exists.'}, help_text='Required. 150 characters or fewer. Letters, digits and @/./+/-/_ only.', max_length=150, unique=True, validators=[django.contrib.auth.validators.UnicodeUsernameValidator()], verbose_name='username')),
                    ('first_name', models.CharField(blank=True, max_length=150, verbose_name='first name')),
                    ('last_name', models.CharField(blank=True, max_length=150, verbose_name='last name')),
                    ('email', models.EmailField(blank=True, max_length=254, verbose_name='email address')),
                    ('is_staff', models.BooleanField(default=False, help_text='Designates whether the user can log into this admin site.', verbose_name='staff status')),
                    ('is_active', models.BooleanField(default=True, help_text='Designates whether this user should be treated as active. Unselect this instead of deleting accounts.', verbose_name='active')),
                    ('date_joined', models.DateTimeField(default=django.utils.timezone.now, verbose_name='date joined')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('policy', models.JSONField(blank=True, default=dict, help_text='Numbers that replace the site\'s, for example {"input_token_budget": 60000}.', verbose_name='context policy')),
                    ('groups', models.ManyToManyField(blank=True, help_text='The groups this user belongs to. A user will get all permissions granted to each of their groups.', related_name='user_set', related_query_name='user', to='auth.group', verbose_name='groups')),
                    ('user_permissions', models.ManyToManyField(blank=True, help_text='Specific permissions for this user.', related_name='user_set', related_query_name='user', to='auth.permission', verbose_name='user permissions')),
                    ('preferences', models.JSONField(blank=True, default=dict)),
                    ('is_exempt', models.BooleanField(default=False, help_text='Nothing is held or refused; what calls cost is recorded all the same.', verbose_name='exempt from budgets')),
                    ('policy_limits', models.JSONField(blank=True, default=dict)),
                    ('session_epoch', models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                    ('cost_centre', models.ForeignKey(blank=True, help_text='For which their next calls count, unless a chat has one of its own.', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.costcentre', verbose_name='cost centre')),
                ],
                options={
                    'verbose_name': 'user',
                    'verbose_name_plural': 'users',
                    'permissions': [('read_content', "Can read the content of other people's conversations")],
                    'abstract': False,
                },
                managers=[
                    ('objects', django.contrib.auth.models.UserManager()),
                ],
            ),
            migrations.CreateModel(
                name='Budget',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('period', models.CharField(choices=[('minute', 'Minute'), ('hour', 'Hour'), ('day', 'Day'), ('week', 'Week'), ('month', 'Month'), ('lifetime', 'Lifetime')], default='month', max_length=10)),
                    ('is_active', models.BooleanField(default=True)),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to=settings.AUTH_USER_MODEL)),
                    ('limit', models.PositiveBigIntegerField(help_text='Of money in dollars.', validators=[django.core.validators.MaxValueValidator(1000000000000000)])),
                    ('scope', models.CharField(choices=[('site', 'the site'), ('group', 'a group'), ('user', 'a user')], default='user', max_length=5)),
                    ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budgets', to='auth.group')),
                    ('kind', models.CharField(choices=[('pool', 'shared by all'), ('per_member', 'for each member'), ('own', 'set by the person')], default='per_member', max_length=10)),
                    ('unit', models.CharField(choices=[('money', 'money'), ('tokens', 'tokens'), ('turns', 'turns'), ('requests', 'requests')], default='money', max_length=8)),
                    ('time_zone', models.CharField(default='UTC', help_text='Where its days begin at midnight, such as Europe/Vienna.', max_length=64, validators=[conversations.models.validators.demand_zone])),
                    ('soft_percents', models.CharField(blank=True, default='50,80,95', help_text='At these shares of the limit people are told, once in each window.', max_length=40, validators=[conversations.models.validators.demand_percents])),
                    ('model', models.CharField(blank=True, db_default='', default='', help_text='Only calls of this model count: its id, or a family such as opus. Empty: all.', max_length=100)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('group__isnull', True), ('scope', 'site'), ('user__isnull', True)), models.Q(('group__isnull', False), ('scope', 'group'), ('user__isnull', True)), models.Q(('group__isnull', True), ('scope', 'user'), ('user__isnull', False)), _connector='OR'), name='budget_subject', violation_error_message='Name the group or the user of the scope, and no other.'), models.CheckConstraint(condition=models.Q(('limit__lte', 1000000000000000)), name='budget_limit'), models.UniqueConstraint(condition=models.Q(('is_active', True), ('scope', 'site')), fields=('kind', 'unit', 'period', 'model'), name='one_active_site_budget', violation_error_message='There is an active budget of this kind, unit, period and model.'), models.UniqueConstraint(condition=models.Q(('is_active', True), ('scope', 'group')), fields=('group', 'kind', 'unit', 'period', 'model'), name='one_active_group_budget', violation_error_message='There is an active budget of this kind, unit, period and model.'), models.UniqueConstraint(condition=models.Q(('is_active', True), ('scope', 'user')), fields=('user', 'kind', 'unit', 'period', 'model'), name='one_active_user_budget', violation_error_message='There is an active budget of this kind, unit, period and model.'), models.CheckConstraint(condition=models.Q(models.Q(('kind__in', ('per_member', 'own')), ('scope', 'user')), models.Q(models.Q(('scope', 'user'), _negated=True), models.Q(('kind', 'own'), _negated=True)), _connector='OR'), name='budget_kind', violation_error_message='What is set for one person is no pool, and only a person sets a limit for themselves.'), models.CheckConstraint(condition=models.Q(('kind__in', ('pool', 'per_member', 'own')), ('period__in', ('minute', 'hour', 'day', 'week', 'month', 'lifetime')), ('unit__in', ('money', 'tokens', 'turns', 'requests'))), name='budget_choices')],
                },
            ),
            migrations.CreateModel(
                name='BudgetWindow',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('starts_at', models.DateTimeField()),
                    ('ends_at', models.DateTimeField(null=True)),
                    ('budget', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='windows', to='conversations.budget')),
                    ('spent', models.PositiveBigIntegerField(default=0)),
                    ('held', models.PositiveBigIntegerField(default=0)),
                    ('overrun', models.PositiveBigIntegerField(default=0)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='windows', to=settings.AUTH_USER_MODEL)),
                    ('limit', models.PositiveBigIntegerField(default=0)),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('held__gt', 0)), fields=['held'], name='window_holds'), models.Index(fields=['user', 'starts_at'], name='window_of_moment')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('user__isnull', True)), fields=('budget', 'starts_at'), name='window_of_pool'), models.UniqueConstraint(fields=('user', 'budget', 'starts_at'), name='window_of_user'), models.CheckConstraint(condition=models.Q(('held__gte', 0), ('overrun__gte', 0), ('spent__gte', 0)), name='window_not_negative'), models.CheckConstraint(condition=models.Q(('limit__gte', django.db.models.expressions.CombinedExpression(models.F('spent'), '+', models.F('held')))), name='window_within_limit')],
                },
            ),
            migrations.CreateModel(
                name='Conversation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('title', models.CharField(blank=True, max_length=200)),
                    ('model', models.CharField(max_length=100)),
                    ('instructions', models.TextField(blank=True)),
                    ('policy', models.JSONField(blank=True, default=dict)),
                    ('head', models.PositiveBigIntegerField(default=0)),
                    ('tip', models.PositiveBigIntegerField(default=0)),
                    ('links', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(blank=True, max_length=80)),
                    ('pinned_at', models.DateTimeField(blank=True, null=True)),
                    ('archived_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='conversations', to=settings.AUTH_USER_MODEL)),
                    ('deleted_at', models.DateTimeField(blank=True, null=True)),
                    ('erase_at', models.DateTimeField(blank=True, null=True)),
                    ('leaf', models.PositiveIntegerField(default=0)),
                    ('titled_by', models.CharField(default='words', max_length=6)),
                    ('forked_from', models.ForeignKey(blank=True, editable=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='forks', to='conversations.turn')),
                    ('web_search', models.CharField(blank=True, choices=[('', 'off'), ('alone', 'on, and nothing private is read'), ('beside', 'on, beside private data')], default='', max_length=6)),
                    ('anchored', models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                    ('version', models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                    ('effort', models.CharField(blank=True, choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high'), ('xhigh', 'very high'), ('max', 'maximum')], db_default='', default='', max_length=6)),
                    ('in_full_always', models.BooleanField(db_default=False, default=False)),
                    ('in_full_turn', models.PositiveIntegerField(db_default=0, default=0)),
                    ('asks_before_egress', models.BooleanField(db_default=False, default=False)),
                    ('removed_by_rule', models.CharField(blank=True, db_default='', default='', max_length=250)),
                    ('restored_at', models.DateTimeField(blank=True, null=True)),
                    ('cost_centre', models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.costcentre')),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', '-updated_at'], name='conversatio_owner_i_0bb8cd_idx'), models.Index(condition=models.Q(('erase_at__isnull', False)), fields=['erase_at'], name='conversation_erase_at'), models.Index(condition=models.Q(('links__gt', models.F('anchored'))), fields=['id'], name='conversation_unanchored')],
                },
            ),
            migrations.CreateModel(
                name='ApiCall',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('number', models.PositiveIntegerField()),
                    ('purpose', models.CharField(choices=[('reply', 'Reply'), ('summary', 'Summary'), ('title', 'Title')], max_length=10)),
                    ('model', models.CharField(max_length=100)),
                    ('tip', models.PositiveBigIntegerField()),
                    ('body_digest', models.CharField(max_length=80)),
                    ('body_bytes', models.PositiveBigIntegerField()),
                    ('estimated_tokens', models.PositiveIntegerField()),
                    ('view_tokens', models.PositiveIntegerField(default=0)),
                    ('overhead_tokens', models.PositiveIntegerField(default=0)),
                    ('view_edits', models.PositiveIntegerField(default=0)),
                    ('binding', models.CharField(max_length=80)),
                    ('max_tokens', models.PositiveIntegerField()),
                    ('sent_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('messages', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.blob')),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='conversations.conversation')),
                    ('envelope', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.envelope')),
                    ('turn', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='calls', to='conversations.turn')),
                    ('cost_centre', models.ForeignKey(db_index=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.costcentre')),
                ],
                options={
                    'verbose_name': 'call',
                    'indexes': [models.Index(fields=['conversation', 'tip'], name='conversatio_convers_813f01_idx'), models.Index(fields=['sent_at', 'id'], name='call_sent_at')],
                    'constraints': [models.UniqueConstraint(fields=('turn', 'number'), name='apicall_number')],
                },
            ),
            migrations.CreateModel(
                name='LedgerEntry',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('reserve', 'Reserve'), ('settle', 'Settle'), ('release', 'Release'), ('adjust', 'Adjust')], max_length=8)),
                    ('reason', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='conversations.apicall')),
                    ('window', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='entries', to='conversations.budgetwindow')),
                    ('amount', models.BigIntegerField()),
                    ('form', models.UUIDField(editable=False, null=True, unique=True)),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('limit', models.PositiveBigIntegerField(null=True)),
                    ('overrun', models.BigIntegerField(db_default=0, default=0)),
                ],
                options={
                    'verbose_name_plural': 'ledger entries',
                    'indexes': [models.Index(fields=['created_at', 'id'], name='ledger_created_at')],
                    'constraints': [models.UniqueConstraint(fields=('call', 'window', 'kind'), name='ledger_once'), models.CheckConstraint(condition=models.Q(('amount__gte', 0), ('kind', 'adjust'), _connector='OR'), name='ledger_amount'), models.CheckConstraint(condition=models.Q(('call__isnull', False), models.Q(('kind', 'adjust'), models.Q(('reason', ''), _negated=True)), _connector='OR'), name='ledger_reason')],
                },
            ),
            migrations.CreateModel(
                name='Message',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('seq', models.PositiveBigIntegerField()),
                    ('parent', models.PositiveBigIntegerField()),
                    ('kind', models.CharField(choices=[('prompt', 'prompt'), ('answer', 'answer'), ('results', 'results')], max_length=10)),
                    ('content', models.TextField()),
                    ('estimate', models.PositiveIntegerField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='conversations.conversation')),
                    ('turn', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='messages', to='conversations.turn')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'seq'), name='message_seq'), models.CheckConstraint(condition=models.Q(('parent__lt', models.F('seq'))), name='message_parent')],
                },
            ),
            migrations.CreateModel(
                name='ApiResult',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('status', models.CharField(choices=[('complete', 'Complete'), ('stopped', 'Stopped'), ('truncated', 'Truncated'), ('refused', 'Refused'), ('error', 'Error'), ('lost', 'Lost')], max_length=10)),
                    ('request_id', models.CharField(blank=True, max_length=100)),
                    ('http_status', models.PositiveSmallIntegerField(null=True)),
                    ('error_type', models.CharField(blank=True, max_length=60)),
                    ('error_message', models.TextField(blank=True)),
                    ('stop_reason', models.CharField(blank=True, max_length=40)),
                    ('usage', models.TextField(default='{}')),
                    ('input_tokens', models.PositiveBigIntegerField(null=True)),
                    ('output_tokens', models.PositiveBigIntegerField(null=True)),
                    ('cache_read_tokens', models.PositiveBigIntegerField(null=True)),
                    ('cache_write_tokens', models.PositiveBigIntegerField(null=True)),
                    ('cost_micros', models.PositiveBigIntegerField()),
                    ('cost_basis', models.CharField(max_length=10)),
                    ('first_event_ms', models.PositiveIntegerField(null=True)),
                    ('duration_ms', models.PositiveIntegerField()),
                    ('ended_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('call', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='result', to='conversations.apicall')),
                    ('answer', models.OneToOneField(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='result', to='conversations.message')),
                    ('bill', models.TextField(blank=True, db_default='', default='')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='ModelPrice',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('input', 'Input'), ('output', 'Output'), ('cache_write_5m', 'Cache write (5 minutes)'), ('cache_write_1h', 'Cache write (1 hour)'), ('cache_read', 'Cache read'), ('web_search', 'Web search')], max_length=14)),
                    ('micros_per_million', models.PositiveBigIntegerField(validators=[django.core.validators.MaxValueValidator(1000000000000)])),
                    ('above_tokens', models.PositiveIntegerField(default=0)),
                    ('effective_from', models.DateTimeField()),
                    ('effective_to', models.DateTimeField(blank=True, null=True)),
                    ('source', models.CharField(blank=True, max_length=200)),
                    ('model', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='prices', to='conversations.apimodel')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(condition=models.Q(('effective_to', None)), fields=('model', 'kind', 'above_tokens'), name='one_open_price'), models.CheckConstraint(condition=models.Q(('micros_per_million__gte', 0), ('micros_per_million__lte', 1000000000000)), name='price_possible')],
                },
            ),
            migrations.CreateModel(
                name='Reservation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('is_open', models.BooleanField(default=True)),
                    ('call', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='conversations.apicall')),
                    ('window', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='reservations', to='conversations.budgetwindow')),
                    ('amount', models.PositiveBigIntegerField()),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('is_open', True)), fields=['window'], name='reservation_open')],
                    'constraints': [models.UniqueConstraint(fields=('call', 'window'), name='reservation_call_window')],
                },
            ),
            migrations.CreateModel(
                name='Turn',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('number', models.PositiveIntegerField()),
                    ('state', models.CharField(choices=[('queued', 'Queued'), ('running', 'Running'), ('tool_wait', 'Waiting for a tool'), ('approval_wait', 'Waiting for approval'), ('backoff', 'Waiting to try again'), ('cancelling', 'Cancelling'), ('done', 'Done'), ('failed', 'Failed'), ('cancelled', 'Cancelled'), ('interrupted', 'Interrupted')], default='queued', max_length=14)),
                    ('finish_reason', models.CharField(blank=True, max_length=20)),
                    ('error_code', models.CharField(blank=True, max_length=40)),
                    ('error_text', models.TextField(blank=True)),
                    ('client_id', models.UUIDField(default=uuid.uuid4)),
                    ('payload_digest', models.CharField(max_length=80)),
                    ('attempt', models.PositiveSmallIntegerField(default=0)),
                    ('retry_at', models.DateTimeField(blank=True, null=True)),
                    ('lease_owner', models.CharField(blank=True, max_length=80)),
                    ('lease_generation', models.PositiveIntegerField(default=0)),
                    ('lease_until', models.DateTimeField(blank=True, null=True)),
                    ('stop_requested_at', models.DateTimeField(blank=True, null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('started_at', models.DateTimeField(blank=True, null=True)),
                    ('ended_at', models.DateTimeField(blank=True, null=True)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='turns', to='conversations.conversation')),
                    ('retry_of', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, to='conversations.turn')),
                    ('parent', models.PositiveIntegerField(default=0)),
                    ('tip', models.PositiveBigIntegerField(default=0)),
                    ('continues', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.turn')),
                    ('claimed_at', models.DateTimeField(blank=True, null=True)),
                    ('ran_ms', models.PositiveBigIntegerField(default=0)),
                    ('takeovers', models.PositiveSmallIntegerField(default=0)),
                    ('version', models.PositiveBigIntegerField(db_default=0, default=0, editable=False)),
                    ('waits_for', models.CharField(blank=True, db_default='', default='', max_length=140)),
                ],
                options={
                    'indexes': [models.Index(condition=models.Q(('state__in', ('queued', 'running', 'tool_wait', 'approval_wait', 'backoff', 'cancelling'))), fields=['lease_until'], name='turn_live_lease'), models.Index(fields=['conversation', 'parent'], name='turn_versions'), models.Index(fields=['created_at', 'id'], name='turn_created_at')],
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'number'), name='turn_number'), models.UniqueConstraint(fields=('conversation', 'client_id'), name='turn_client_id'), models.UniqueConstraint(condition=models.Q(('state__in', ('queued', 'running', 'tool_wait', 'approval_wait', 'backoff', 'cancelling'))), fields=('conversation',), name='one_live_turn'), models.CheckConstraint(condition=models.Q(('state__in', ['queued', 'running', 'tool_wait', 'approval_wait', 'backoff', 'cancelling', 'done', 'failed', 'cancelled', 'interrupted'])), name='turn_state'), models.CheckConstraint(condition=models.Q(('parent__lt', models.F('number'))), name='turn_parent')],
                },
            ),
            migrations.CreateModel(
                name='Transformation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('seq', models.PositiveBigIntegerField()),
                    ('parent', models.PositiveBigIntegerField()),
                    ('kind', models.CharField(choices=[('ingest', 'ingest'), ('compaction', 'compaction'), ('rounds', 'rounds'), ('summary', 'summary'), ('trim', 'trim'), ('shrink', 'shrink'), ('rebind', 'rebind'), ('repair', 'repair'), ('restore', 'restore'), ('clearing', 'clearing by the API')], max_length=12)),
                    ('outcome', models.CharField(choices=[('applied', 'applied'), ('rejected', 'rejected'), ('vetoed', 'vetoed'), ('expected', 'expected of the API')], max_length=10)),
                    ('number', models.BigIntegerField()),
                    ('threshold', models.BigIntegerField()),
                    ('source', models.CharField(max_length=10)),
                    ('setting', models.CharField(blank=True, max_length=40)),
                    ('edits', models.TextField()),
                    ('policy', models.TextField()),
                    ('tokens_before', models.PositiveIntegerField()),
                    ('tokens_after', models.PositiveIntegerField()),
                    ('bytes_before', models.PositiveBigIntegerField()),
                    ('bytes_after', models.PositiveBigIntegerField()),
                    ('note', models.TextField()),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='transformations', to='conversations.conversation')),
                    ('summary_call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='summaries', to='conversations.apicall')),
                    ('turn', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='transformations', to='conversations.turn')),
                    ('decision', models.TextField(blank=True, default='')),
                ],
                options={
                    'indexes': [models.Index(fields=['created_at', 'id'], name='transformation_created_at')],
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'seq'), name='transformation_seq'), models.CheckConstraint(condition=models.Q(('kind', 'repair'), ('kind', 'restore'), models.Q(('actor__isnull', False), ('kind', 'summary')), models.Q(('bytes_after__lt', models.F('bytes_before')), ('outcome', 'applied')), models.Q(models.Q(('outcome', 'applied'), _negated=True), ('edits', '[]')), _connector='OR'), name='transformation_shrinks')],
                },
            ),
            migrations.CreateModel(
                name='ToolCall',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('position', models.PositiveSmallIntegerField()),
                    ('tool_use_id', models.CharField(max_length=200)),
                    ('name', models.CharField(max_length=128)),
                    ('input', models.TextField()),
                    ('effect', models.CharField(max_length=6)),
                    ('state', models.CharField(choices=[('planned', 'Planned'), ('started', 'Started'), ('ok', 'OK'), ('error', 'Error'), ('unknown', 'Unknown'), ('denied', 'Denied'), ('cancelled', 'Cancelled')], default='planned', max_length=10)),
                    ('details', models.JSONField(default=dict)),
                    ('started_at', models.DateTimeField(null=True)),
                    ('ended_at', models.DateTimeField(null=True)),
                    ('answer', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tool_calls', to='conversations.message')),
                    ('output', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.blob')),
                    ('turn', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tool_calls', to='conversations.turn')),
                    ('flaw', models.TextField(blank=True)),
                    ('is_private', models.BooleanField(default=False)),
                    ('given_id', models.TextField(blank=True, db_default='', default='')),
                    ('origin', models.CharField(blank=True, db_default='', default='', max_length=9)),
                ],
                options={
                    'ordering': ['answer_id', 'position'],
                    'constraints': [models.UniqueConstraint(fields=('turn', 'tool_use_id'), name='toolcall_id')],
                },
            ),
            migrations.CreateModel(
                name='Draft',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('thinking', models.TextField(blank=True)),
                    ('text', models.TextField(blank=True)),
                    ('updated_at', models.DateTimeField(auto_now=True)),
                    ('call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, to='conversations.apicall')),
                    ('turn', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='draft', to='conversations.turn')),
                ],
            ),
            migrations.CreateModel(
                name='Pin',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('tool_use_id', models.CharField(blank=True, max_length=200)),
                    ('seq', models.PositiveBigIntegerField(null=True)),
                    ('is_pinned', models.BooleanField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pins', to='conversations.conversation')),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('seq__isnull', False), ('tool_use_id', '')), models.Q(models.Q(('tool_use_id', ''), _negated=True), ('seq', None)), _connector='OR'), name='pin_of_one_target')],
                },
            ),
            migrations.CreateModel(
                name='Erasure',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('conversation', models.UUIDField(db_index=True)),
                    ('begun_at', models.DateTimeField()),
                    ('deleted_at', models.DateTimeField()),
                    ('due_at', models.DateTimeField()),
                    ('messages', models.PositiveIntegerField()),
                    ('transformations', models.PositiveIntegerField()),
                    ('calls', models.PositiveIntegerField()),
                    ('links', models.PositiveBigIntegerField()),
                    ('cost_micros', models.PositiveBigIntegerField()),
                    ('usage', models.JSONField(default=list)),
                    ('erased_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='erasures', to=settings.AUTH_USER_MODEL)),
                    ('tail', models.CharField(blank=True, max_length=80)),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('rule', models.CharField(blank=True, db_default='', default='', max_length=250)),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='SearchText',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seq', models.PositiveBigIntegerField(default=0)),
                    ('kind', models.CharField(max_length=10)),
                    ('part', models.PositiveIntegerField(default=0)),
                    ('text', models.TextField()),
                    ('words', conversations.models.fields.TermsField()),
                    ('at', models.DateTimeField()),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='conversations.conversation')),
                    ('message', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='conversations.message')),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', '-at', '-id'], name='searchtext_newest')],
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'seq', 'part'), name='searchtext_part')],
                },
            ),
            migrations.CreateModel(
                name='Attachment',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('name', models.CharField(max_length=255)),
                    ('media_type', models.CharField(max_length=60)),
                    ('size', models.PositiveBigIntegerField()),
                    ('width', models.PositiveIntegerField(null=True)),
                    ('height', models.PositiveIntegerField(null=True)),
                    ('pages', models.PositiveIntegerField(null=True)),
                    ('estimate', models.PositiveIntegerField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('conversation', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='attachments', to='conversations.conversation')),
                    ('data', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.blob')),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='attachments', to=settings.AUTH_USER_MODEL)),
                    ('characters', models.PositiveIntegerField(null=True)),
                    ('ending', models.CharField(default='', max_length=10)),
                    ('original', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.blob')),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', '-created_at'], name='conversatio_owner_i_4e99c5_idx'), models.Index(condition=models.Q(('conversation', None)), fields=['created_at'], name='attachment_unsent')],
                },
            ),
            migrations.CreateModel(
                name='QueuedPrompt',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('client_id', models.UUIDField()),
                    ('payload_digest', models.CharField(max_length=80)),
                    ('content', models.TextField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='queued_prompts', to='conversations.conversation')),
                ],
                options={
                    'ordering': ['pk'],
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'client_id'), name='queuedprompt_client_id')],
                },
            ),
            migrations.CreateModel(
                name='Proposal',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tip', models.PositiveBigIntegerField()),
                    ('target', models.PositiveBigIntegerField(default=0)),
                    ('text', models.TextField(blank=True)),
                    ('reason', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('asked_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('call', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.apicall')),
                    ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='proposal', to='conversations.conversation')),
                ],
            ),
            migrations.CreateModel(
                name='Grant',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('amount', models.PositiveBigIntegerField(validators=[django.core.validators.MaxValueValidator(1000000000000000)])),
                    ('starts_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('expires_at', models.DateTimeField(blank=True, null=True)),
                    ('reason', models.CharField(max_length=200)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('budget', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='grants', to='conversations.budget')),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='grants', to=settings.AUTH_USER_MODEL)),
                    ('form', models.UUIDField(editable=False, null=True, unique=True)),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                ],
                options={
                    'indexes': [models.Index(fields=['budget', 'expires_at'], name='grant_running')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('amount__gte', 1), ('amount__lte', 1000000000000000)), name='grant_amount'), models.CheckConstraint(condition=models.Q(('expires_at', None), ('expires_at__gt', models.F('starts_at')), _connector='OR'), name='grant_ends'), models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='grant_reason')],
                },
            ),
            migrations.CreateModel(
                name='Crossing',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('percent', models.PositiveSmallIntegerField()),
                    ('spent', models.PositiveBigIntegerField()),
                    ('limit', models.PositiveBigIntegerField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('window', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='crossings', to='conversations.budgetwindow')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('window', 'percent'), name='crossing_once')],
                    'indexes': [models.Index(fields=['created_at'], name='crossing_created')],
                },
            ),
            migrations.CreateModel(
                name='TurnCap',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('micros', models.PositiveBigIntegerField(blank=True, help_text='In dollars; 0: no cap.', null=True, validators=[django.core.validators.MaxValueValidator(1000000000000000)], verbose_name='money')),
                    ('rounds', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='model calls')),
                    ('tool_calls', models.PositiveIntegerField(blank=True, null=True)),
                    ('seconds', models.PositiveIntegerField(blank=True, null=True, validators=[django.core.validators.MinValueValidator(1)])),
                    ('group', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='turn_cap', to='auth.group')),
                    ('user', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='turn_cap', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('group__isnull', False), ('user__isnull', True)), models.Q(('group__isnull', True), ('user__isnull', False)), _connector='OR'), name='turn_cap_subject')],
                },
            ),
            migrations.CreateModel(
                name='ApprovalRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tool', models.CharField(help_text='The name of the tool, as the model calls it.', max_length=128, unique=True)),
                    ('rule', models.CharField(choices=[('ask', 'ask the person'), ('allow', 'always allow'), ('never', 'never allow')], default='ask', max_length=5)),
                ],
                options={
                    'ordering': ['tool'],
                },
            ),
            migrations.CreateModel(
                name='Approval',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('arguments_digest', models.CharField(max_length=80)),
                    ('destination', models.TextField(blank=True)),
                    ('reason', models.CharField(choices=[('write', 'it changes something'), ('private', 'it tells others, and private data was read before'), ('egress', 'it tells others, and nothing leaves here unasked')], max_length=8)),
                    ('sources', models.CharField(blank=True, max_length=400)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('expires_at', models.DateTimeField()),
                    ('call', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='approval', to='conversations.toolcall')),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='approvals', to='conversations.conversation')),
                    ('words', models.TextField(blank=True, db_default='', default='')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='Decision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('verdict', models.CharField(choices=[('once', 'allowed once'), ('chat', 'allowed in this conversation'), ('denied', 'denied'), ('expired', 'not answered in time')], max_length=8)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('approval', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='decision', to='conversations.approval')),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.conversation')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='ToolRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tool', models.CharField(max_length=128, validators=[django.core.validators.RegexValidator('\\A[a-zA-Z0-9_-]{1,128}\\Z', 'Letters, digits, _ and -, as the model calls it.')])),
                    ('is_allowed', models.BooleanField(default=False, verbose_name='allowed')),
                    ('group', models.ForeignKey(blank=True, help_text='Empty: everybody for whom no group says otherwise.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='tool_rules', to='auth.group')),
                ],
                options={
                    'ordering': ['tool', 'group_id'],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('group', None)), fields=('tool',), name='one_site_tool_rule', violation_error_message='There is a rule for this tool already.'), models.UniqueConstraint(fields=('tool', 'group'), name='one_group_tool_rule', violation_error_message='There is a rule for this tool and group already.')],
                },
            ),
            migrations.CreateModel(
                name='ToolSwitch',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tool', models.CharField(max_length=128)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('conversation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tool_switches', to='conversations.conversation')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('conversation', 'tool'), name='tool_switched_once')],
                },
            ),
            migrations.CreateModel(
                name='MailAccount',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('name', models.CharField(max_length=60)),
                    ('address', models.CharField(max_length=254)),
                    ('login', models.CharField(max_length=254)),
                    ('auth', models.CharField(choices=[('password', 'App password'), ('token', 'OAuth access token'), ('refresh', 'OAuth refresh token')], default='password', max_length=10)),
                    ('provider', models.CharField(blank=True, max_length=60)),
                    ('sealed_secret', models.TextField(editable=False)),
                    ('imap_host', models.CharField(max_length=253)),
                    ('imap_port', models.PositiveIntegerField(default=993)),
                    ('imap_security', models.CharField(choices=[('tls', 'TLS'), ('starttls', 'STARTTLS')], default='tls', max_length=10)),
                    ('smtp_host', models.CharField(blank=True, max_length=253)),
                    ('smtp_port', models.PositiveIntegerField(default=465)),
                    ('smtp_security', models.CharField(choices=[('tls', 'TLS'), ('starttls', 'STARTTLS')], default='tls', max_length=10)),
                    ('folder', models.CharField(default='INBOX', max_length=250)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('used_at', models.DateTimeField(null=True)),
                    ('problem', models.CharField(blank=True, max_length=400)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='mail_accounts', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('owner', 'name'), name='mail_account_name'), models.CheckConstraint(condition=models.Q(('auth__in', ('password', 'token', 'refresh')), ('imap_security__in', ('tls', 'starttls')), ('smtp_security__in', ('tls', 'starttls'))), name='mail_account_choices')],
                },
            ),
            migrations.CreateModel(
                name='McpServer',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=32, unique=True, validators=[django.core.validators.RegexValidator('\\A[a-z][a-z0-9-]{0,31}\\Z', 'Use lower case letters, digits and hyphens, a letter first, 32 at most.')])),
                    ('note', models.CharField(blank=True, max_length=200)),
                    ('transport', models.CharField(choices=[('stdio', 'a command on this machine (stdio)'), ('http', 'a URL (streamable HTTP)')], max_length=5)),
                    ('command', models.CharField(blank=True, max_length=1000)),
                    ('arguments', models.JSONField(blank=True, default=list)),
                    ('url', models.CharField(blank=True, max_length=2000, verbose_name='URL')),
                    ('sealed_environment', models.TextField(blank=True, editable=False)),
                    ('sealed_headers', models.TextField(blank=True, editable=False)),
                    ('is_enabled', models.BooleanField(default=False, verbose_name='enabled')),
                    ('is_private', models.BooleanField(default=False, verbose_name='results are private')),
                    ('allowed_tools', models.JSONField(blank=True, default=list)),
                    ('deadline', models.PositiveSmallIntegerField(default=60, validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(600)], verbose_name='seconds a call may take')),
                    ('state', models.CharField(choices=[('idle', 'not started'), ('connecting', 'Connecting'), ('connected', 'Connected'), ('failed', 'Failed')], default='idle', editable=False, max_length=10)),
                    ('state_since', models.DateTimeField(editable=False, null=True)),
                    ('last_seen_at', models.DateTimeField(editable=False, null=True)),
                    ('last_error', models.TextField(blank=True, editable=False)),
                    ('last_error_at', models.DateTimeField(editable=False, null=True)),
                    ('says', models.CharField(blank=True, editable=False, max_length=200)),
                    ('check_asked_at', models.DateTimeField(editable=False, null=True)),
                ],
                options={
                    'verbose_name': 'MCP server',
                    'ordering': ['name'],
                    'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('transport', 'stdio'), ('url', ''), models.Q(('command', ''), _negated=True)), models.Q(('command', ''), ('transport', 'http'), models.Q(('url', ''), _negated=True)), _connector='OR'), name='mcpserver_one_place'), models.CheckConstraint(condition=models.Q(('deadline__gte', 1), ('deadline__lte', 600)), name='mcpserver_deadline')],
                },
            ),
            migrations.CreateModel(
                name='McpDecision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('tool', models.CharField(blank=True, max_length=200)),
                    ('kind', models.CharField(choices=[('added', 'server added'), ('changed', 'server changed'), ('approved', 'tool approved'), ('rejected', 'tool rejected'), ('withdrawn', 'approval withdrawn'), ('differs', 'definition changed by the server'), ('gone', 'tool no longer listed')], max_length=9)),
                    ('note', models.CharField(blank=True, max_length=300)),
                    ('definition', models.TextField(blank=True)),
                    ('digest', models.CharField(blank=True, max_length=80)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='conversations.mcpserver')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                ],
                options={
                    'verbose_name': 'MCP decision',
                    'ordering': ['-pk'],
                },
            ),
            migrations.CreateModel(
                name='McpTool',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=200)),
                    ('call_name', models.CharField(max_length=128)),
                    ('approved', models.TextField(blank=True)),
                    ('approved_digest', models.CharField(blank=True, max_length=80)),
                    ('effect', models.CharField(choices=[('write', 'changes things'), ('keyed', 'a repeat changes nothing more'), ('read', 'only reads')], default='write', max_length=5)),
                    ('listed', models.TextField(blank=True)),
                    ('listed_digest', models.CharField(blank=True, max_length=80)),
                    ('rejected_digest', models.CharField(blank=True, max_length=80)),
                    ('flaw', models.CharField(blank=True, max_length=300)),
                    ('listed_at', models.DateTimeField(null=True)),
                    ('server', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='tools', to='conversations.mcpserver')),
                    ('approved_server', models.CharField(blank=True, db_default='', default='', max_length=80)),
                ],
                options={
                    'verbose_name': 'MCP tool',
                    'ordering': ['server', 'name'],
                    'constraints': [models.UniqueConstraint(fields=('server', 'name'), name='mcptool_name'), models.CheckConstraint(condition=models.Q(models.Q(('approved', ''), ('approved_digest', '')), models.Q(models.Q(('approved', ''), _negated=True), models.Q(('approved_digest', ''), _negated=True)), _connector='OR'), name='mcptool_approved')],
                },
            ),
            migrations.CreateModel(
                name='WorkspaceFile',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('state', models.CharField(choices=[('pending', 'Pending'), ('live', 'Live'), ('trash', 'Trash'), ('gone', 'Gone')], default='pending', max_length=8)),
                    ('path', models.CharField(max_length=1024)),
                    ('object', models.CharField(max_length=200, unique=True)),
                    ('bytes', models.PositiveBigIntegerField()),
                    ('digest', models.CharField(max_length=71)),
                    ('done_by', models.CharField(blank=True, max_length=200)),
                    ('batch', models.UUIDField(null=True)),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('changed_at', models.DateTimeField()),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='workspace_files', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'indexes': [models.Index(fields=['owner', 'state'], name='workspace_file_owner'), models.Index(condition=models.Q(('state', 'live'), _negated=True), fields=['changed_at'], name='workspace_file_sweep')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('state', 'live')), fields=('owner', 'path'), name='one_live_file_of_a_path'), models.CheckConstraint(condition=models.Q(('state__in', ('pending', 'live', 'trash', 'gone'))), name='workspace_file_states'), models.CheckConstraint(condition=models.Q(models.Q(('state', 'trash'), _negated=True), ('batch__isnull', False), _connector='OR'), name='workspace_file_batch')],
                },
            ),
            migrations.CreateModel(
                name='SiteChain',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('links', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(blank=True, max_length=80)),
                    ('anchored', models.PositiveBigIntegerField(default=0)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_site_chain')],
                },
            ),
            migrations.CreateModel(
                name='AnchorMark',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('number', models.PositiveBigIntegerField(default=0)),
                    ('digest', models.CharField(blank=True, max_length=80)),
                    ('written_at', models.DateTimeField(null=True)),
                ],
                options={
                    'constraints': [models.CheckConstraint(condition=models.Q(('id', 1)), name='one_anchor_mark')],
                },
            ),
            migrations.CreateModel(
                name='FailedLogIns',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('peer', models.CharField(blank=True, max_length=64, verbose_name='address')),
                    ('name_digest', models.CharField(blank=True, editable=False, max_length=64)),
                    ('count', models.PositiveIntegerField(default=0, verbose_name='failed log-ins')),
                    ('began_at', models.DateTimeField()),
                    ('waits', models.PositiveIntegerField(default=0)),
                    ('until', models.DateTimeField(blank=True, null=True, verbose_name='refused until')),
                    ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name': 'failed log-ins',
                    'verbose_name_plural': 'failed log-ins',
                    'constraints': [models.UniqueConstraint(fields=('peer', 'name_digest'), name='one_count_of_failures')],
                },
            ),
            migrations.CreateModel(
                name='ViewCheckpoint',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('seq', models.PositiveBigIntegerField()),
                    ('answers', models.PositiveIntegerField()),
                    ('compaction', models.PositiveBigIntegerField(default=0)),
                    ('summaries', models.JSONField(default=list)),
                    ('view', models.TextField()),
                    ('made_at', models.DateTimeField(auto_now=True)),
                    ('conversation', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='view_checkpoint', to='conversations.conversation')),
                ],
            ),
            migrations.CreateModel(
                name='EffortRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('effort', models.CharField(choices=[('low', 'low'), ('medium', 'medium'), ('high', 'high'), ('xhigh', 'very high'), ('max', 'maximum')], help_text='More thinks longer and costs more; a model without the level uses its nearest.', max_length=6)),
                    ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='effort_rule', to='auth.group')),
                ],
                options={
                    'verbose_name': 'default effort',
                    'ordering': ['group_id'],
                },
            ),
            migrations.CreateModel(
                name='ErasedDigests',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('phrases', models.BinaryField()),
                    ('words', models.BinaryField()),
                    ('purged_at', models.DateTimeField(db_index=True, null=True)),
                    ('erasure', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='digests', to='conversations.erasure')),
                    ('key', models.BinaryField(default=bytes, max_length=8)),
                    ('tried_at', models.DateTimeField(db_index=True, null=True)),
                ],
            ),
            migrations.CreateModel(
                name='ErasureProof',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('phrases', models.PositiveIntegerField()),
                    ('words', models.PositiveIntegerField()),
                    ('places', models.JSONField(default=list)),
                    ('found', models.PositiveIntegerField()),
                    ('backup', models.CharField(blank=True, max_length=255)),
                    ('proven_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('erasure', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='proofs', to='conversations.erasure')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='AccountEvent',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('kind', models.CharField(choices=[('guessed', 'Somebody guessed at your password; further attempts were refused'), ('reset_asked', 'A link to a new password was asked for'), ('reset_made', 'An administrator made a link to a new password'), ('password_reset', 'A new password was set with a link from a mail'), ('password_changed', 'The password was changed'), ('factor_added', 'A second factor or recovery codes were added'), ('factor_removed', 'A second factor was removed'), ('email_asked', 'A link to a new e-mail address was asked for'), ('email_changed', 'The e-mail address was changed'), ('token_made', 'A token of the API was made'), ('token_revoked', 'A token of the API was revoked')], max_length=24)),
                    ('peer', models.CharField(blank=True, max_length=64, verbose_name='address')),
                    ('at', models.DateTimeField()),
                    ('is_shown', models.BooleanField(default=False)),
                    ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='account_events', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['-at', '-id'],
                    'indexes': [models.Index(fields=['user', '-at'], name='events_of_an_account')],
                },
            ),
            migrations.CreateModel(
                name='EgressRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='egress_rule', to='auth.group')),
                ],
                options={
                    'verbose_name': 'group that sends nothing unasked',
                    'verbose_name_plural': 'groups that send nothing unasked',
                    'ordering': ['group_id'],
                },
            ),
            migrations.CreateModel(
                name='SecondFactorRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('group', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='second_factor_rule', to='auth.group')),
                ],
                options={
                    'verbose_name': 'required second factor',
                    'ordering': ['group_id'],
                },
            ),
            migrations.CreateModel(
                name='Invitation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                    ('email', models.EmailField(blank=True, help_text='The account gets this address. Where the site sends mail, the link goes there.', max_length=254, verbose_name='e-mail address')),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False, verbose_name='made')),
                    ('expires_at', models.DateTimeField(verbose_name='works until')),
                    ('used_at', models.DateTimeField(editable=False, null=True, verbose_name='used')),
                    ('withdrawn_at', models.DateTimeField(editable=False, null=True, verbose_name='withdrawn')),
                    ('groups', models.ManyToManyField(blank=True, related_name='+', to='auth.group')),
                    ('made_by', models.ForeignKey(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('used_by', models.OneToOneField(editable=False, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='invitation', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['-pk'],
                },
            ),
            migrations.CreateModel(
                name='InvitationDecision',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('kind', models.CharField(choices=[('made', 'made'), ('used', 'used'), ('withdrawn', 'withdrawn')], max_length=9)),
                    ('note', models.TextField(blank=True)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('invitation', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='decisions', to='conversations.invitation')),
                ],
                options={
                    'ordering': ['-pk'],
                },
            ),
            migrations.CreateModel(
                name='LegalHold',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('conversation', models.UUIDField(db_index=True, null=True)),
                    ('reason', models.CharField(max_length=500)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='legal_holds', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='HoldRelease',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('reason', models.CharField(max_length=500)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('hold', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='release', to='conversations.legalhold')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='RetentionRule',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('idle_days', models.PositiveIntegerField(blank=True, help_text='A chat goes when its last message is this many days old.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='days without a message')),
                    ('file_days', models.PositiveIntegerField(blank=True, help_text='A chat goes when a file in it was attached this many days ago. It goes as a whole: a sent file is part of the record of what the model saw.', null=True, validators=[django.core.validators.MinValueValidator(1)], verbose_name='days with an attached file')),
                    ('then', models.CharField(choices=[('trash', 'to the trash, from which its owner can bring it back'), ('erase', 'erased at once')], default='trash', max_length=5, verbose_name='where it goes')),
                    ('group', models.ForeignKey(blank=True, help_text='Leave blank for a rule for everybody.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='retention_rules', to='auth.group')),
                ],
                options={
                    'ordering': ['pk'],
                    'constraints': [models.UniqueConstraint(django.db.models.functions.comparison.Coalesce('group', 0), name='one_retention_rule_of_each'), models.CheckConstraint(condition=models.Q(('idle_days__isnull', False), ('file_days__isnull', False), _connector='OR'), name='retention_rule_has_days', violation_error_message='Set at least one number of days.')],
                },
            ),
            migrations.CreateModel(
                name='Session',
                fields=[
                    ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                    ('session_data', models.TextField(verbose_name='session data')),
                    ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                    ('device', models.CharField(blank=True, max_length=60)),
                    ('network', models.CharField(blank=True, max_length=60)),
                    ('began_at', models.DateTimeField(null=True)),
                    ('seen_at', models.DateTimeField(null=True)),
                    ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='sessions', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'verbose_name': 'session',
                    'verbose_name_plural': 'sessions',
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='Impersonation',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('reason', models.CharField(max_length=300)),
                    ('until', models.DateTimeField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('person', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='impersonations', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='ImpersonationEnd',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('impersonation', models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, related_name='end', to='conversations.impersonation')),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='DatabaseMove',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('source', models.CharField(max_length=10)),
                    ('target', models.CharField(max_length=10)),
                    ('rows', models.PositiveBigIntegerField()),
                    ('digest', models.CharField(max_length=80)),
                    ('begun_at', models.DateTimeField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ],
                options={
                    'abstract': False,
                },
            ),
            migrations.CreateModel(
                name='MoneyRecord',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('table', models.CharField(max_length=20)),
                    ('key', models.PositiveBigIntegerField()),
                    ('content', models.TextField()),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('reason', models.CharField(blank=True, db_default='', max_length=200)),
                ],
                options={
                    'indexes': [models.Index(fields=['table', 'key', 'link'], name='money_record_of_row')],
                },
            ),
            migrations.CreateModel(
                name='SavedPrompt',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('title', models.CharField(max_length=100)),
                    ('command', models.CharField(max_length=40, validators=[django.core.validators.RegexValidator('\\A[a-z0-9]+(-[a-z0-9]+)*\\Z', 'Use small letters a to z, digits, and - between them.')])),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('changed_at', models.DateTimeField(auto_now=True)),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='saved_prompts', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('owner', 'command'), name='saved_prompt_command')],
                },
            ),
            migrations.CreateModel(
                name='SitePrompt',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('title', models.CharField(max_length=100)),
                    ('command', models.CharField(max_length=40, validators=[django.core.validators.RegexValidator('\\A[a-z0-9]+(-[a-z0-9]+)*\\Z', 'Use small letters a to z, digits, and - between them.')])),
                    ('text', models.TextField()),
                    ('created_at', models.DateTimeField(auto_now_add=True)),
                    ('changed_at', models.DateTimeField(auto_now=True)),
                    ('groups', models.ManyToManyField(blank=True, help_text='Only their members see the prompt; none chosen: everybody does.', related_name='site_prompts', to='auth.group')),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('command',), name='site_prompt_command', violation_error_message='A prompt of the site has this command already.')],
                },
            ),
            migrations.CreateModel(
                name='ClosedDay',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('day', models.DateField(unique=True)),
                    ('is_current', models.BooleanField(default=True)),
                    ('sums', models.JSONField(default=dict)),
                ],
            ),
            migrations.CreateModel(
                name='PersonDay',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('calls', models.PositiveIntegerField()),
                    ('input', models.PositiveBigIntegerField()),
                    ('output', models.PositiveBigIntegerField()),
                    ('cache_read', models.PositiveBigIntegerField()),
                    ('cache_write', models.PositiveBigIntegerField()),
                    ('micros', models.PositiveBigIntegerField()),
                    ('compacting', models.PositiveBigIntegerField()),
                    ('applied', models.PositiveIntegerField()),
                    ('saved', models.BigIntegerField()),
                    ('requested', models.PositiveIntegerField()),
                    ('rejected', models.PositiveIntegerField()),
                    ('closed', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='people', to='conversations.closedday')),
                    ('owner', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'constraints': [models.UniqueConstraint(fields=('closed', 'owner'), name='person_day_once')],
                },
            ),
            migrations.CreateModel(
                name='AlertDelivery',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('public_id', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('state', models.CharField(choices=[('waiting', 'waiting'), ('sent', 'sent'), ('given_up', 'given up')], default='waiting', max_length=8)),
                    ('attempts', models.PositiveSmallIntegerField(default=0)),
                    ('next_try_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('last_error', models.CharField(blank=True, max_length=200)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('sent_at', models.DateTimeField(null=True)),
                    ('crossing', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='deliveries', to='conversations.crossing')),
                    ('person', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL)),
                    ('alert', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='deliveries', to='conversations.budgetalert')),
                ],
                options={
                    'verbose_name_plural': 'alert deliveries',
                    'indexes': [models.Index(condition=models.Q(('state', 'waiting')), fields=['next_try_at'], name='delivery_due'), models.Index(fields=['created_at'], name='delivery_created')],
                    'constraints': [models.UniqueConstraint(condition=models.Q(('person__isnull', False)), fields=('crossing', 'person'), name='mail_of_crossing'), models.UniqueConstraint(condition=models.Q(('person__isnull', True)), fields=('alert', 'crossing'), name='webhook_of_crossing')],
                },
            ),
            migrations.CreateModel(
                name='BudgetAlert',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(max_length=100, unique=True)),
                    ('from_percent', models.PositiveSmallIntegerField(default=80, help_text='Tells of each percent that a budget names from this one on, and of 100: all of it is spent.', validators=[django.core.validators.MinValueValidator(1), django.core.validators.MaxValueValidator(100)], verbose_name='from percent')),
                    ('url', models.CharField(blank=True, max_length=2000, verbose_name='webhook URL')),
                    ('sealed_secret', models.TextField(blank=True, editable=False)),
                    ('origin', models.CharField(blank=True, editable=False, max_length=200)),
                    ('is_active', models.BooleanField(default=True, verbose_name='active')),
                    ('active_since', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('budget', models.ForeignKey(blank=True, help_text='Only this one; none chosen: those of the group, else all.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='alerts', to='conversations.budget')),
                    ('group', models.ForeignKey(blank=True, help_text='Only the budgets that are set for this group.', null=True, on_delete=django.db.models.deletion.CASCADE, related_name='budget_alerts', to='auth.group')),
                    ('people', models.ManyToManyField(blank=True, help_text='They get a mail. Each needs an e-mail address.', related_name='budget_alerts', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['name'],
                    'constraints': [models.CheckConstraint(condition=models.Q(('budget', None), ('group', None), _connector='OR'), name='alert_of_one_kind', violation_error_message='Choose a budget or a group, not both.'), models.CheckConstraint(condition=models.Q(('from_percent__gte', 1), ('from_percent__lte', 100)), name='alert_percent')],
                },
            ),
            migrations.CreateModel(
                name='ApiToken',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('name', models.CharField(help_text='What uses it, so that you know it again.', max_length=100)),
                    ('digest', models.CharField(editable=False, max_length=64, unique=True)),
                    ('scopes', models.CharField(editable=False, max_length=200)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                    ('expires_at', models.DateTimeField(editable=False)),
                    ('revoked_at', models.DateTimeField(editable=False, null=True)),
                    ('last_used_at', models.DateTimeField(editable=False, null=True)),
                    ('minute', models.DateTimeField(editable=False, null=True)),
                    ('requests', models.PositiveIntegerField(default=0, editable=False)),
                    ('owner', models.ForeignKey(editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'ordering': ['-pk'],
                },
            ),
            migrations.CreateModel(
                name='CostCentre',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('code', models.CharField(help_text='As in your accounts.', max_length=40, unique=True, verbose_name='code')),
                    ('name', models.CharField(max_length=100)),
                    ('is_active', models.BooleanField(default=True, help_text='One that is not takes no more calls; what was spent stays where it was.')),
                ],
                options={
                    'ordering': ['code'],
                },
            ),
            migrations.CreateModel(
                name='BookedDifference',
                fields=[
                    ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                    ('link', models.PositiveBigIntegerField(default=0)),
                    ('chain', models.CharField(max_length=80)),
                    ('day', models.DateField()),
                    ('model', models.CharField(blank=True, max_length=100)),
                    ('unit', models.CharField(max_length=10)),
                    ('amount', models.BigIntegerField()),
                    ('windows', models.PositiveSmallIntegerField()),
                    ('form', models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                    ('reason', models.CharField(max_length=200)),
                    ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                    ('actor', models.ForeignKey(null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL)),
                ],
                options={
                    'indexes': [models.Index(fields=['day', 'model'], name='booked_difference_of_day')],
                    'constraints': [models.CheckConstraint(condition=models.Q(('reason', ''), _negated=True), name='booked_reason')],
                },
            ),
        ]),
        migrations.RunPython(catalogue.seed, migrations.RunPython.noop),
        migrations.RunPython(native.say, migrations.RunPython.noop),
        migrations.RunPython(web_search.seed, migrations.RunPython.noop),
        migrations.RunPython(begin_chains, migrations.RunPython.noop),
    ]

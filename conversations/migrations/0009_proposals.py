import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0008_paths'),
    ]

    operations = [
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
        migrations.RemoveConstraint(
            model_name='transformation',
            name='transformation_shrinks',
        ),
        migrations.AddConstraint(
            model_name='transformation',
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ('kind', 'restore'),
                    models.Q(('actor__isnull', False), ('kind', 'summary')),
                    models.Q(('bytes_after__lt', models.F('bytes_before')), ('outcome', 'applied')),
                    models.Q(models.Q(('outcome', 'applied'), _negated=True), ('edits', '[]')),
                    _connector='OR',
                ),
                name='transformation_shrinks',
            ),
        ),
    ]

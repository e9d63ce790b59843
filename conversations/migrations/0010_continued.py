from django.db import migrations, models
import django.db.models.deletion


class Migration(migrations.Migration):

    dependencies = [
        ('conversations', '0009_proposals'),
    ]

    operations = [
        migrations.AddField(
            model_name='turn',
            name='continues',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='conversations.turn'),
        ),
    ]
